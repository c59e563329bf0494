// Products with a long sum and a small result are made in parts (rewrites/algebra.egg,
// product-in-parts).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::Op;

// xᵀ·d, as the gradient of a kernel of a convolution.
Graph LongSum(int64_t rows, int64_t in, int64_t out) {
  Graph g;
  const auto x = g.AddInput("x", DType::kF32, {rows, in});
  const auto d = g.AddInput("d", DType::kF32, {rows, out});
  g.AddOutput("y", g.Matmul(g.Transpose(x), d, "y"));
  return g;
}

// The longest sum of products in one kernel of the plan.
int64_t LongestSum(const LoweredForTest& lowered) {
  int64_t longest = 0;
  for (const Launch& launch : lowered.plan.launches) {
    for (const Uop& uop : launch.kernel.uops) {
      if (uop.op != UOp::kReduce || !IsProduct(launch.kernel.uops[uop.src[0]])) continue;
      int64_t length = 1;
      for (AxisId axis : uop.axes) length *= launch.kernel.axes[axis].extent;
      longest = std::max(longest, length);
    }
  }
  return longest;
}

TEST(ProductParts, StayNear) {
  const auto lowered = LowerForTest(LongSum(25088, 32, 64), {});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(LongestSum(*lowered), 25088 / 28) << Describe(*lowered);
}

TEST(ProductParts, NeedTheRule) {
  TestOptions options;
  std::string& text = options.rules["algebra"].text;
  const size_t begin = text.find("(rule ((= e (Matmul a b))\n       (= 2 (rank (shape e)))");
  const size_t end = text.find(":name \"product-in-parts\"");
  ASSERT_NE(begin, std::string::npos);
  text.erase(begin, text.find('\n', end) - begin);
  const auto lowered = LowerForTest(LongSum(25088, 32, 64), options);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(LongestSum(*lowered), 25088) << Describe(*lowered);
}

TEST(ProductParts, AreWhatTheInterpreterSays) {
  for (search::Mode mode : {search::Mode::kEGraph, search::Mode::kGreedy}) {
    ExpectSameAsInterpreter(LongSum(4096, 8, 40), {.mode = mode}, 21);
    ExpectSameAsInterpreter(LongSum(130, 3, 5), {.mode = mode}, 22);
    ExpectSameAsInterpreter(LongSum(131, 3, 5), {.mode = mode}, 23);  // of no equal parts
  }
}

}  // namespace
}  // namespace l3c::l0::lower
