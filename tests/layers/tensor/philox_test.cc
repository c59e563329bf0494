#include "layers/tensor/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace l3c::tensor {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that the generator's authors publish with Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOneAndMatchesTheStream) {
  EXPECT_EQ(UniformFromWord(0), 0.0f);
  EXPECT_LT(UniformFromWord(~0u), 1.0f);
  PhiloxStream random(42);
  for (uint64_t i = 0; i < 9; ++i) EXPECT_EQ(random.NextUniform(), UniformAt(42, i));
}

TEST(Philox, NormalHasTheMomentsOfANormal) {
  constexpr int kCount = 200000;
  std::vector<float> values(kCount);
  FillNormal(7, 3, 0, 1, values);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (double v : values) {
    ASSERT_TRUE(std::isfinite(v));
    m1 += v, m2 += v * v, m3 += v * v * v, m4 += v * v * v * v;
  }
  EXPECT_NEAR(m1 / kCount, 0, 0.01);
  EXPECT_NEAR(m2 / kCount, 1, 0.02);
  EXPECT_NEAR(m3 / kCount, 0, 0.04);
  EXPECT_NEAR(m4 / kCount, 3, 0.1);
}

// The portable logarithm, sine and cosine against libm's, through what they make together.
TEST(Philox, NormalIsBoxMullerToTheLastBits) {
  PhiloxStream words(99);
  PhiloxStream normals(99);
  constexpr double kTurn = 6.283185307179586476925;
  for (int i = 0; i < 20000; ++i) {
    const double u = (words.NextWord() + 1.0) * 0x1p-32;
    const double turns = words.NextWord() * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(u));
    EXPECT_NEAR(normals.NextNormal(), radius * std::cos(kTurn * turns), 1e-6);
    EXPECT_NEAR(normals.NextNormal(), radius * std::sin(kTurn * turns), 1e-6);
  }
}

// Recorded once; the same on every machine and compiler, or initial weights would differ.
TEST(Philox, NormalBitsAreFixed) {
  std::vector<float> values(64);
  FillNormal(1, 2, 0, 1, values);
  uint64_t hash = 14695981039346656037ULL;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211ULL;
  }
  EXPECT_EQ(hash, 17123666998130311083u);
}

TEST(Philox, BelowIsInRangeAndEven) {
  PhiloxStream random(5);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[random.NextBelow(7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.NextBelow(1), 0u);
  const uint64_t large = (uint64_t{1} << 63) + 1;  // where half of all words are rejected
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.NextBelow(large), large);
}

TEST(Philox, ShuffleIsAPermutationThatDependsOnSeedAndEpoch) {
  const std::vector<uint32_t> first = ShuffledIndices(1000, 3, 0);
  std::vector<uint32_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(first, all);
  EXPECT_EQ(ShuffledIndices(1000, 3, 0), first);
  EXPECT_NE(ShuffledIndices(1000, 3, 1), first);
  EXPECT_NE(ShuffledIndices(1000, 4, 0), first);
  EXPECT_TRUE(ShuffledIndices(0, 3, 0).empty());
}

TEST(Philox, StreamsDiffer) {
  EXPECT_NE(PhiloxStream(1, 0).NextWord64(), PhiloxStream(1, 1).NextWord64());
  EXPECT_NE(PhiloxStream(1, 0).NextWord64(), PhiloxStream(2, 0).NextWord64());
}

}  // namespace
}  // namespace l3c::tensor
