#include "layers/tensor/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "layers/tensor/graph.h"
#include "layers/tensor/interpreter.h"

namespace l3c::tensor {
namespace {

TEST(Bf16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(RoundToBf16(1.0f), 0x3f80);
  EXPECT_EQ(RoundToBf16(0x1.01p0f), 0x3f80);    // half way, down to the even one
  EXPECT_EQ(RoundToBf16(0x1.03p0f), 0x3f82);    // half way, up to the even one
  EXPECT_EQ(RoundToBf16(0x1.0102p0f), 0x3f81);  // beyond half way
  EXPECT_EQ(RoundToBf16(-0x1.0102p0f), 0xbf81);
  EXPECT_EQ(RoundToBf16(0x1.ffp0f), 0x4000);  // into the next binade
  EXPECT_EQ(RoundToBf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(RoundToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(FromBf16(RoundToBf16(std::nanf("")))));
  // A payload in the low half alone must not become an infinity.
  EXPECT_TRUE(std::isnan(FromBf16(RoundToBf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(RoundToBf16(0x1p-127f), 0x0000);
  EXPECT_EQ(RoundToBf16(-0x1p-149f), 0x8000);
}

TEST(Bf16, IsWithinItsBound) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // The largest numbers round to infinity.
    if (!std::isfinite(x) || std::fabs(x) < 0x1p-126f || std::fabs(x) >= 0x1.ffp127f) continue;
    ASSERT_LE(std::fabs(FromBf16(RoundToBf16(x)) - x), std::ldexp(std::fabs(x), -8)) << x;
  }
}

TEST(Bf16, DotAddsTheHighProductFirst) {
  // In this order 2²⁵ swallows the 1 that is added first and cancels before the second.
  const uint32_t a = Bf16Pair(-0x1p25f, 0x1p25f);
  const uint32_t one = Bf16Pair(1, 1);
  EXPECT_EQ(Bf16Dot(1, a, one), 0);
  EXPECT_EQ(Bf16Dot(1, Bf16Pair(3, 5), Bf16Pair(7, 11)), 1 + 21 + 55);
  EXPECT_EQ(Bf16Product(Bf16Pair(3, 5), Bf16Pair(7, 11)), 76);
  EXPECT_EQ(Bf16Dot(0x1p-127f, 0, 0), 0);  // a denormal counts as zero
}

TEST(Bf16, TileSumAddsEachHalfByItself) {
  // 2²⁵ swallows the 1 that stands beside it in its half, and cancels the other half's.
  const uint32_t a[] = {Bf16Pair(0x1p25f, -0x1p25f), Bf16Pair(1, 3)};
  const uint32_t ones[] = {Bf16Pair(1, 1), Bf16Pair(1, 1)};
  EXPECT_EQ(Bf16TileSum(7, a, ones), 7 + ((0x1p25f + 1) - (0x1p25f - 3)));
  EXPECT_EQ(Bf16TileSum(1, a, ones), Bf16TileSum(0, a, ones) + 1);  // the sum comes last
  const uint32_t b[] = {Bf16Pair(3, 5)};
  const uint32_t c[] = {Bf16Pair(7, 11)};
  EXPECT_EQ(Bf16TileSum(1, b, c), 1 + 21 + 55);
  EXPECT_EQ(Bf16TileSum(0x1p-127f, {}, {}), 0);  // a denormal counts as zero
}

TEST(Bf16, MatmulIsTheMatmulOfRoundedFactors) {
  Graph g;
  const NodeId a = g.AddInput("a", DType::kF32, {2, 3, 4});
  const NodeId b = g.AddInput("b", DType::kF32, {2, 4, 5});
  const auto half = [&](NodeId x, Shape shape, size_t axis, int64_t which) {
    Attributes attr;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t part = d == axis ? shape[d] / 2 : shape[d];
      const int64_t start = d == axis ? which * part : 0;
      attr.ints.insert(attr.ints.end(), {start, start + part, 1});
    }
    return g.Add(Op::kSlice, {x}, attr);
  };
  const NodeId ap = g.Add(Op::kBf16Pair, {half(a, {2, 3, 4}, 2, 0), half(a, {2, 3, 4}, 2, 1)});
  const NodeId bp = g.Add(Op::kBf16Pair, {half(b, {2, 4, 5}, 1, 0), half(b, {2, 4, 5}, 1, 1)});
  EXPECT_EQ(g.node(ap).dtype, DType::kU32);
  g.AddOutput("y", g.Add(Op::kBf16Matmul, {ap, bp}));
  g.AddOutput("z", g.Matmul(a, b));
  std::mt19937 random(3);
  std::uniform_real_distribution<float> real(-2, 2);
  Array x = Array::Zeros(DType::kF32, {2, 3, 4});
  Array w = Array::Zeros(DType::kF32, {2, 4, 5});
  for (double& v : x.floats) v = FromBf16(RoundToBf16(real(random)));
  for (double& v : w.floats) v = FromBf16(RoundToBf16(real(random)));
  const auto out = Evaluate(g, std::vector<Array>{x, w}, Precision::kOracle);
  EXPECT_EQ(out[0].shape, (Shape{2, 3, 5}));
  for (size_t i = 0; i < out[0].floats.size(); ++i) {
    EXPECT_NEAR(out[0].floats[i], out[1].floats[i], 1e-12);
  }
}

TEST(Bf16, OperandsAreChecked) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF64, {2, 2});
  EXPECT_THROW(g.Add(Op::kBf16Pair, {x, x}), ShapeError);
  const NodeId y = g.AddInput("y", DType::kF32, {2, 2});
  EXPECT_THROW(g.Add(Op::kBf16Matmul, {y, y}), ShapeError);
}

}  // namespace
}  // namespace l3c::tensor
