// Sums that one kernel makes in one walk over the rows (sum_groups.h), and what waits for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/layers/l0/lower/forms.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

// Kernels that read the input of the step, and it is large.
size_t Walks(const LoweredForTest& lowered, const std::string& input) {
  return static_cast<size_t>(
      std::count_if(lowered.plan.launches.begin(), lowered.plan.launches.end(),
                    [&](const Launch& launch) { return Reads(lowered, launch, input); }));
}

bool AddsUp(const Kernel& kernel) {
  return std::any_of(kernel.uops.begin(), kernel.uops.end(), [](const Uop& uop) {
    return uop.op == UOp::kStore && uop.accumulate && uop.dynamic_stride == 0;
  });
}

size_t KernelsThatAddUp(const LoweredForTest& lowered) {
  size_t count = 0;
  for (const Launch& launch : lowered.plan.launches) count += AddsUp(launch.kernel);
  return count;
}

// y is not wanted, so nothing but the gradients is made of x: its own, the gain's and the offset's.
Graph NormGradients(const Shape& x) {
  return LayerAndGradients("norm(layer)", x, /*with_output=*/false);
}

TEST(Sums, ANormsGradientsAreOneWalk) {
  const Graph g = NormGradients({256, 768});
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(Walks(*lowered, "x"), 1u) << Describe(*lowered);
  EXPECT_EQ(KernelsThatAddUp(*lowered), 1u) << Describe(*lowered);
}

TEST(Sums, AreWhatTheInterpreterSays) {
  for (const Shape& x : {Shape{48, 20}, Shape{4, 32, 33}, Shape{64, 17}, Shape{2, 3, 5, 40}}) {
    ExpectSameAsInterpreter(NormGradients(x), {}, 11);
    ExpectSameAsInterpreter(NormGradients(x), {.mode = search::Mode::kGreedy}, 12);
  }
}

// Without the parts there is no axis to share among workers, and nothing is added up.
TEST(Sums, NeedParts) {
  TestOptions options;
  std::string& text = options.rules["algebra"].text;
  const size_t begin =
      text.find("(rule ((= e (Sum a axes))\n       (= s (shape a))\n       (= cut");
  const size_t end = text.find(":name \"sum-in-parts\"");
  ASSERT_NE(begin, std::string::npos);
  text.erase(begin, text.find('\n', end) - begin);
  const auto lowered = LowerForTest(NormGradients({256, 768}), options);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(KernelsThatAddUp(*lowered), 0u) << Describe(*lowered);
  EXPECT_GT(Walks(*lowered, "x"), 1u);
}

// A loss that only a report reads waits for the walk of the gradients.
Graph LossAndGradients() {
  Graph g;
  const Shape shape = {256, 512};
  const NodeId x = g.AddInput("x", DType::kF32, shape);
  const NodeId b = g.AddInput("s_b", DType::kF32, {512});
  const NodeId d = g.Add(Op::kSin, {g.Add(Op::kAdd, {x, g.Expand(b, shape)})}, {}, "d");
  const NodeId rows = g.ReduceSum(g.Add(Op::kMul, {d, d}), {1}, "rows");
  g.AddOutput("loss", g.ReduceSum(rows, {0}, "loss"));
  const NodeId grad = g.ReduceSum(g.Add(Op::kMul, {d, g.Full(2, shape)}), {0}, "grad");
  g.AddOutput("s_b", g.Add(Op::kAdd, {b, g.Add(Op::kMul, {grad, g.Full(-0.1, {512})})}, {}, "b2"));
  return g;
}

TEST(Sums, ALossWaitsForTheWalkOfItsGradients) {
  const Graph g = LossAndGradients();
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(Walks(*lowered, "x"), 1u) << Describe(*lowered);
  const auto loss = KernelsStoring(*lowered, "loss");
  ASSERT_EQ(loss.size(), 1u);
  EXPECT_FALSE(Reads(*lowered, *loss[0], "x"));
  ExpectSameAsInterpreter(g, {}, 13);
}

// Σx and Σx² need x once: one pass for both.
TEST(Sums, PassesThatNeedNotWaitAreOne) {
  Graph g;
  const Shape shape = {64, 96};
  const NodeId x = g.AddInput("x", DType::kF32, shape);
  const NodeId sum = g.ReduceSum(x, {1}, "sum");
  const NodeId square = g.ReduceSum(g.Add(Op::kMul, {x, x}), {1}, "square");
  const auto wide = [&](NodeId v) { return g.Expand(g.Reshape(v, {64, 1}), shape); };
  const NodeId y = g.Add(Op::kAdd, {wide(sum), g.Add(Op::kMul, {x, wide(square)})}, {}, "y");
  g.AddOutput("y", y);
  const auto lowered = LowerForTest(g, {});
  ASSERT_TRUE(lowered);
  ASSERT_EQ(lowered->plan.launches.size(), 1u) << Describe(*lowered);
  const Kernel& kernel = lowered->plan.launches[0].kernel;
  EXPECT_EQ(std::count_if(kernel.axes.begin(), kernel.axes.end(),
                          [](const Axis& axis) { return axis.kind == AxisKind::kReduce; }),
            1)
      << Describe(*lowered);
  ExpectSameAsInterpreter(g, {}, 15);
}

// Two definitions of one sum have axes of their own: the first runs over 2500 rows, which the view
// before it cuts in two; the second over ten parts of them.
TEST(Sums, EachDefinitionOfASumHasItsOwnAxes) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {50, 50, 64});
  const NodeId turned = g.Add(Op::kSin, {g.Permute(x, {1, 0, 2})});
  const NodeId rows = g.Reshape(turned, {2500, 64});
  const NodeId b = g.AddInput("s_b", DType::kF32, {64});
  g.AddOutput("s_b", g.Add(Op::kAdd, {b, g.ReduceSum(rows, {0}, "sum")}, {}, "b2"));
  for (const auto mode : {search::Mode::kGreedy, search::Mode::kEGraph}) {
    ExpectSameAsInterpreter(g, {.mode = mode}, 16);
    const auto lowered = LowerForTest(g, {.mode = mode, .explain = true});
    ASSERT_TRUE(lowered);
    for (const search::Decision& decision : lowered->explanation.decisions) {
      if (!decision.id.ends_with(".sum")) continue;
      for (const search::Loser& loser : decision.losers) {
        ExpectSameAsInterpreter(g, {.mode = mode, .forced = {{decision.id, loser.label}}}, 17);
      }
    }
  }
}

}  // namespace
}  // namespace l3c::l0::lower
