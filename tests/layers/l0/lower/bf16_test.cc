// Products of factors rounded to bfloat16 (rewrites/bf16.egg): where they may be chosen, what the
// choice does to the numbers, and that it can be forced.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/l0/kernel_text.h"
#include "tests/layers/l0/lower/forms.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

size_t Bf16Kernels(const LoweredForTest& lowered) {
  size_t count = 0;
  for (const Launch& launch : lowered.plan.launches) {
    count += PrintKernel(launch.kernel).find(kBf16Dot) != std::string::npos;
  }
  return count;
}

TestOptions Fast(search::Mode mode = search::Mode::kEGraph) {
  return {.mode = mode, .numerics = egraph::Numerics::kFast};
}

// A product, and those of its gradients: plain, with the left factor turned, with the right one.
Graph Products(int64_t m, int64_t k, int64_t n, DType dtype = DType::kF32) {
  Graph g;
  const NodeId x = g.AddInput("x", dtype, {m, k});
  const NodeId w = g.AddInput("w", dtype, {k, n});
  const NodeId d = g.AddInput("d", dtype, {m, n});
  g.AddOutput("y", g.Matmul(x, w, "y"));
  g.AddOutput("dw", g.Matmul(g.Transpose(x), d, "dw"));
  g.AddOutput("dx", g.Matmul(d, g.Transpose(w), "dx"));
  return g;
}

TEST(Bf16Choice, IsTakenUnderFastAlone) {
  const Graph g = Products(256, 512, 384);
  const auto fast = LowerForTest(g, Fast());
  ASSERT_TRUE(fast);
  EXPECT_EQ(Bf16Kernels(*fast), 3u) << Describe(*fast);
  for (const egraph::Numerics numerics : {egraph::Numerics::kExact, egraph::Numerics::kReassoc}) {
    const auto other = LowerForTest(g, {.numerics = numerics});
    ASSERT_TRUE(other);
    EXPECT_EQ(Bf16Kernels(*other), 0u);
  }
}

// Without the instructions it would cost many times as much.
TEST(Bf16Choice, IsNotTakenWhereTheCpuHasNoSuchProducts) {
  const Graph g = Products(256, 512, 384);
  for (const std::vector<std::string>& features :
       {std::vector<std::string>{"avx2", "fma"}, {"avx2", "avx512f", "fma"}, {"sse2"}}) {
    TestOptions options = Fast();
    options.features = features;
    const auto lowered = LowerForTest(g, options);
    ASSERT_TRUE(lowered);
    EXPECT_EQ(Bf16Kernels(*lowered), 0u) << features.front();
  }
}

TEST(Bf16Choice, IsOfF32WithEvenSumsAlone) {
  for (const Graph& g : {Products(256, 512, 384, DType::kF64), Products(255, 511, 383)}) {
    const auto lowered = LowerForTest(g, Fast());
    ASSERT_TRUE(lowered);
    EXPECT_EQ(Bf16Kernels(*lowered), 0u) << Describe(*lowered);
  }
}

size_t TileKernels(const LoweredForTest& lowered) {
  size_t count = 0;
  for (const Launch& launch : lowered.plan.launches) {
    count += PrintKernel(launch.kernel).find("in tiles") != std::string::npos;
  }
  return count;
}

TestOptions WithTiles(search::Mode mode = search::Mode::kEGraph) {
  TestOptions options = Fast(mode);
  options.features = {"amx_bf16", "avx2", "avx512bf16", "avx512f", "fma"};
  return options;
}

TEST(TileChoice, IsTakenUnderFastWhereTheCpuHasTiles) {
  const Graph g = Products(256, 512, 384);
  for (const search::Mode mode : {search::Mode::kGreedy, search::Mode::kEGraph}) {
    const auto lowered = LowerForTest(g, WithTiles(mode));
    ASSERT_TRUE(lowered);
    EXPECT_EQ(TileKernels(*lowered), 3u) << Describe(*lowered);
  }
  TestOptions options = WithTiles();
  options.numerics = egraph::Numerics::kReassoc;
  const auto reassoc = LowerForTest(g, options);
  ASSERT_TRUE(reassoc);
  EXPECT_EQ(Bf16Kernels(*reassoc), 0u);
  const auto without = LowerForTest(g, Fast());
  ASSERT_TRUE(without);
  EXPECT_EQ(TileKernels(*without), 0u);
}

// What it beat stands beside it, and each of it can be had.
TEST(TileChoice, IsADecisionThatCanBeForced) {
  const Graph g = Products(256, 512, 384);
  TestOptions options = WithTiles();
  options.explain = true;
  const auto winner = LowerForTest(g, options);
  ASSERT_TRUE(winner);
  const search::Decision* schedule = nullptr;
  const search::Loser* plain = nullptr;
  for (const search::Decision& decision : winner->explanation.decisions) {
    if (!decision.chosen.starts_with("tiles ")) continue;
    schedule = &decision;
    for (const search::Loser& loser : decision.losers) {
      if (loser.label.starts_with("tile ")) plain = &loser;
    }
  }
  ASSERT_NE(schedule, nullptr);
  ASSERT_NE(plain, nullptr);
  EXPECT_GT(plain->cost[0].value, schedule->cost[0].value);
  options.forced[schedule->id] = plain->label;
  const auto forced = LowerForTest(g, options);
  ASSERT_TRUE(forced);
  EXPECT_EQ(TileKernels(*forced) + 1, TileKernels(*winner));
}

// Each sum is within 2⁻⁷ of the sum of its terms' sizes: two factors, each rounded by at most 2⁻⁸.
TEST(Bf16Choice, StaysWithinItsBound) {
  for (TestOptions options :
       {Fast(search::Mode::kOff), Fast(search::Mode::kGreedy), Fast(), WithTiles()}) {
    const Graph g = Products(64, 96, 80);
    options.forced["l0/test/bf16/products"] = "everywhere";
    const auto lowered = LowerForTest(g, options);
    ASSERT_TRUE(lowered);
    EXPECT_EQ(Bf16Kernels(*lowered), 3u) << Describe(*lowered);
    if (!options.features.empty()) EXPECT_GT(TileKernels(*lowered), 0u) << Describe(*lowered);
    const std::vector<Array> inputs = RandomInputs(g, 5);
    std::vector<Array> sizes = inputs;
    for (Array& array : sizes) {
      for (double& x : array.floats) x = std::fabs(x);
    }
    const auto exact = tensor::Evaluate(g, inputs, tensor::Precision::kOracle);
    const auto size = tensor::Evaluate(g, sizes, tensor::Precision::kOracle);
    const std::vector<Array> got = RunLowered(*lowered, inputs);
    double largest = 0;
    for (size_t o = 0; o < exact.size(); ++o) {
      for (size_t i = 0; i < exact[o].floats.size(); ++i) {
        const double error = std::fabs(got[o].floats[i] - exact[o].floats[i]);
        ASSERT_LE(error, size[o].floats[i] * (std::ldexp(1, -7) + 2e-5)) << o << " " << i;
        largest = std::max(largest, error / size[o].floats[i]);
      }
    }
    EXPECT_GT(largest, 1e-4) << "nothing has been rounded";
  }
}

TEST(Bf16Choice, IsADecisionThatCanBeForced) {
  const Graph g = Products(256, 512, 384);
  TestOptions options = Fast();
  options.explain = true;
  const auto winner = LowerForTest(g, options);
  ASSERT_TRUE(winner);
  const search::Decision* form = nullptr;
  for (const search::Decision& decision : winner->explanation.decisions) {
    if (decision.id == "l0/test/bf16/products") form = &decision;
  }
  ASSERT_NE(form, nullptr);
  EXPECT_EQ(form->chosen, "everywhere");
  ASSERT_FALSE(form->losers.empty());
  EXPECT_EQ(form->losers[0].label, "nowhere");
  options.forced[form->id] = "nowhere";
  const auto forced = LowerForTest(g, options);
  ASSERT_TRUE(forced);
  EXPECT_EQ(Bf16Kernels(*forced), 0u);
  EXPECT_DOUBLE_EQ(forced->plan.seconds, form->losers[0].cost[0].value);
}

// A packed factor is one value for all who read it.
TEST(Bf16Choice, PacksAFactorOnceForAllItsProducts) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {256, 512});
  const NodeId h = g.Add(Op::kSin, {x}, {}, "h");
  for (int i = 0; i < 3; ++i) {
    const std::string name = "w" + std::to_string(i);
    g.AddOutput("y" + std::to_string(i),
                g.Matmul(h, g.AddInput(name, DType::kF32, {512, 384}), "y" + std::to_string(i)));
  }
  const auto lowered = LowerForTest(g, Fast());
  ASSERT_TRUE(lowered);
  EXPECT_EQ(Bf16Kernels(*lowered), 3u);
  size_t packing = 0;
  for (const Launch& launch : lowered->plan.launches) {
    packing += PrintKernel(launch.kernel).find(kBf16Pair) != std::string::npos;
  }
  EXPECT_EQ(packing, 4u) << Describe(*lowered);  // h and three weights
}

TEST(Bf16Choice, BatchesOfProductsAndAttentionAgreeWithF32) {
  for (const char* layer : {"attn(4, 64)", "conv(8, 16, kernel: 3, padding: 1)"}) {
    const bool attention = std::string(layer).starts_with("attn");
    const Graph g =
        attention ? LayerAndGradients(layer, {4, 32, 64}) : LayerAndGradients(layer, {4, 8, 8, 8});
    TestOptions options = Fast();
    options.forced["l0/test/bf16/products"] = "everywhere";
    const auto lowered = LowerForTest(g, options);
    ASSERT_TRUE(lowered) << layer;
    EXPECT_GT(Bf16Kernels(*lowered), 2u) << layer;
    std::vector<Array> inputs = RandomInputs(g, 9);
    for (Array& array : inputs) {
      for (double& x : array.floats) x /= 8;  // a softmax of large scores jumps from one to another
    }
    const auto exact = tensor::Evaluate(g, inputs, tensor::Precision::kOracle);
    const std::vector<Array> got = RunLowered(*lowered, inputs);
    for (size_t o = 0; o < exact.size(); ++o) {
      double norm = 0;
      double error = 0;
      for (size_t i = 0; i < exact[o].floats.size(); ++i) {
        norm += std::pow(exact[o].floats[i], 2);
        error += std::pow(got[o].floats[i] - exact[o].floats[i], 2);
      }
      // A chain of products, through softmax and back.
      EXPECT_LE(std::sqrt(error), 3e-2 * std::sqrt(norm)) << layer << " " << o;
    }
  }
}

}  // namespace
}  // namespace l3c::l0::lower
