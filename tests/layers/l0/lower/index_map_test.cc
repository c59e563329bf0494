#include "layers/l0/lower/index_map.h"

#include <gtest/gtest.h>

#include "layers/l0/lower/candidates.h"

namespace l3c::l0::lower {
namespace {

using tensor::Attributes;
using tensor::Op;

Attributes Ints(std::vector<int64_t> ints) {
  Attributes attr;
  attr.ints = std::move(ints);
  return attr;
}

TEST(IndexMap, TransposeSwapsDimensions) {
  const std::vector<int64_t> extents = {3, 5};
  std::optional<SplitRequest> split;
  const auto map =
      ThroughView(Op::kPermute, Ints({1, 0}), {5, 3}, {3, 5}, IdentityMap({3, 5}), extents, split);
  ASSERT_TRUE(map);
  EXPECT_EQ(Flatten(*map, {5, 3}), AxisTerm(0, 1) + AxisTerm(1, 3));
}

TEST(IndexMap, ExpandForgetsTheAxis) {
  const std::vector<int64_t> extents = {4, 6};
  std::optional<SplitRequest> split;
  const auto map =
      ThroughView(Op::kExpand, Ints({4, 6}), {6}, {4, 6}, IdentityMap({4, 6}), extents, split);
  ASSERT_TRUE(map);
  EXPECT_EQ(Flatten(*map, {6}), AxisTerm(1, 1));
}

TEST(IndexMap, ReshapeOfRowsIsTheSameOffset) {
  const std::vector<int64_t> extents = {8, 784};
  std::optional<SplitRequest> split;
  const auto map = ThroughView(Op::kReshape, Ints({8, 784}), {8, 784}, {8, 784},
                               IdentityMap({8, 784}), extents, split);
  ASSERT_TRUE(map);
  const auto merged = ThroughView(Op::kReshape, Ints({8, 28, 28}), {8, 784}, {8, 28, 28},
                                  IdentityMap({8, 28, 28}), std::vector<int64_t>{8, 28, 28}, split);
  ASSERT_TRUE(merged);
  EXPECT_EQ(Flatten(*merged, {8, 784}), AxisTerm(0, 784) + AxisTerm(1, 28) + AxisTerm(2, 1));
}

TEST(IndexMap, SplittingADimensionKeepsTheOffset) {
  const std::vector<int64_t> extents = {24};
  std::optional<SplitRequest> split;
  const auto map =
      ThroughView(Op::kReshape, Ints({24}), {6, 4}, {24}, IdentityMap({24}), extents, split);
  ASSERT_TRUE(map);
  EXPECT_FALSE(split);
  EXPECT_EQ(Flatten(*map, {6, 4}), AxisTerm(0));
  // A transpose below it takes the dimensions apart, and asks for the axis to be cut.
  EXPECT_FALSE(ThroughView(Op::kPermute, Ints({1, 0}), {4, 6}, {6, 4}, *map, extents, split));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->axis, 0u);
  EXPECT_EQ(split->inner, 4);
}

TEST(IndexMap, PaddingGuards) {
  const std::vector<int64_t> extents = {7};
  std::optional<SplitRequest> split;
  const auto map = ThroughView(Op::kPad, Ints({2, 1}), {4}, {7}, IdentityMap({7}), extents, split);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->guards.size(), 1u);
  EXPECT_EQ(map->guards[0].expression, AxisTerm(0));
  EXPECT_EQ(map->guards[0].low, 2);
  EXPECT_EQ(map->guards[0].high, 6);
}

TEST(IndexMap, BijectionsAreRecognised) {
  EXPECT_TRUE(IsBijective(IdentityMap({3, 4}), {3, 4}, std::vector<int64_t>{3, 4}));
  IndexMap column;
  column.dims = {AxisTerm(1), AxisTerm(0)};
  EXPECT_TRUE(IsBijective(column, {4, 3}, std::vector<int64_t>{3, 4}));
  IndexMap row;
  row.dims = {Affine{}, AxisTerm(1)};
  EXPECT_FALSE(IsBijective(row, {3, 4}, std::vector<int64_t>{3, 4}));
}

}  // namespace
}  // namespace l3c::l0::lower
