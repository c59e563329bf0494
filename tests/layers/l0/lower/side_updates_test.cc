// A bias that is brought up to date by the kernel of its weight's update (side_updates.h).
#include <gtest/gtest.h>

#include <string>

#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

// w ← w − lr·(xᵀ·d) and b ← b − lr·Σ d, with a momentum of b's own. `mean`: w's step is scaled by
// what b was, so b may not be overwritten before.
Graph LayerUpdate(int64_t rows, int64_t in, int64_t out, bool mean = false) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {rows, in});
  const NodeId d = g.AddInput("d", DType::kF32, {rows, out});
  const NodeId w = g.AddInput("s_w", DType::kF32, {in, out});
  const NodeId b = g.AddInput("s_b", DType::kF32, {out});
  const NodeId m = g.AddInput("s_m", DType::kF32, {out});
  NodeId step = g.Add(Op::kMul, {g.Matmul(g.Transpose(x), d), g.Full(-0.1, {in, out})});
  if (mean) {
    const NodeId sum = g.Expand(g.Reshape(g.ReduceSum(b, {0}), {1, 1}), {in, out});
    step = g.Add(Op::kMul, {step, sum});
  }
  g.AddOutput("s_w", g.Add(Op::kAdd, {w, step}, {}, "w2"));
  const NodeId m2 = g.Add(
      Op::kAdd, {g.Add(Op::kMul, {m, g.Full(0.9, {out})}), g.ReduceSum(d, {0}, "db")}, {}, "m2");
  g.AddOutput("s_m", m2);
  g.AddOutput("s_b", g.Add(Op::kAdd, {b, g.Add(Op::kMul, {m2, g.Full(-0.1, {out})})}, {}, "b2"));
  return g;
}

TEST(SideUpdates, ABiasRidesOnItsWeightsUpdate) {
  const Graph g = LayerUpdate(64, 96, 256);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  ASSERT_EQ(lowered->plan.launches.size(), 1u) << Describe(*lowered);
  const Kernel& kernel = lowered->plan.launches[0].kernel;
  EXPECT_EQ(NumBlocks(kernel), 4) << "columns are shared among workers";
  for (search::Mode mode : {search::Mode::kEGraph, search::Mode::kGreedy}) {
    ExpectSameAsInterpreter(g, {.mode = mode}, 3);
    ExpectSameAsInterpreter(LayerUpdate(7, 5, 131), {.mode = mode}, 4);
  }
}

// Without the rule it is a kernel of its own.
TEST(SideUpdates, NeedTheRule) {
  TestOptions options;
  std::string& text = options.rules["kernel_grouping"].text;
  const size_t begin = text.find("(rule ((update-beside g k first end))");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = text.find(":numerics exact)", begin);
  text.erase(begin, text.find('\n', end) - begin);
  const auto lowered = LowerForTest(LayerUpdate(64, 96, 256), options);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 2u) << Describe(*lowered);
}

// Ten columns would leave a worker without work.
TEST(SideUpdates, NeedColumnsToShare) {
  const Graph g = LayerUpdate(64, 96, 10);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.launches.size(), 2u) << Describe(*lowered);
}

TEST(SideUpdates, MayNotOverwriteWhatTheProductNeeds) {
  const Graph g = LayerUpdate(64, 96, 256, /*mean=*/true);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_GT(lowered->plan.launches.size(), 1u) << Describe(*lowered);
  ExpectSameAsInterpreter(g, {}, 5);
  ExpectSameAsInterpreter(g, {.mode = search::Mode::kGreedy}, 6);
}

}  // namespace
}  // namespace l3c::l0::lower
