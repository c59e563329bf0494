#include "layers/l0/stored_elements.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c::l0 {
namespace {

ElementRuns Stored(const std::string& shape, const std::string& body) {
  return StoredElements(testing::ParseOne("kernel k(y: out f32 " + shape + ") {\n" + body + "}\n"),
                        0);
}

TEST(StoredElements, CountsWhatAxesCover) {
  EXPECT_EQ(Stored("[6, 4]",
                   "axis i : grid 6 block 2\naxis j : loop 4\n%0 = const f32 1.0\n"
                   "store y[4*i + j], %0\n"),
            (ElementRuns{{0, 24}}));
  EXPECT_EQ(Stored("[6, 4]",
                   "axis i : grid 3 block 2\naxis j : loop 4\n%0 = const f32 1.0\n"
                   "store y[4*i + j], %0\n"),
            (ElementRuns{{0, 12}}));
  EXPECT_EQ(Stored("[6, 4]",
                   "axis i : grid 6 block 2\naxis j : loop 2\n%0 = const f32 1.0\n"
                   "store y[4*i + j + 1], %0\n"),
            (ElementRuns{{1, 3}, {5, 7}, {9, 11}, {13, 15}, {17, 19}, {21, 23}}));
}

TEST(StoredElements, WalksBackwardsAndOverlapping) {
  EXPECT_EQ(Stored("[8]", "axis i : loop 4\n%0 = const f32 1.0\nstore y[-2*i + 7], %0\n"),
            (ElementRuns{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
  EXPECT_EQ(
      Stored("[8]", "axis i : loop 4\naxis j : loop 3\n%0 = const f32 1.0\nstore y[i + j], %0\n"),
      (ElementRuns{{0, 6}}));
}

TEST(StoredElements, HoldsGuardsAgainstEachPoint) {
  EXPECT_EQ(Stored("[8]", "axis i : loop 8\n%0 = const f32 1.0\nstore y[i], %0 if 2 <= i < 7\n"),
            (ElementRuns{{2, 7}}));
  EXPECT_EQ(Stored("[8]",
                   "axis i : loop 8\naxis j : loop 4\n%0 = const f32 1.0\n"
                   "store y[i], %0 if 3 <= i + j < 5\n"),
            (ElementRuns{{0, 5}}));
}

TEST(StoredElements, StoresFillABufferTogether) {
  EXPECT_EQ(Stored("[8]",
                   "axis i : loop 4\n%0 = const f32 1.0\nstore y[2*i], %0\nstore y[2*i + 1], %0\n"),
            (ElementRuns{{0, 8}}));
}

// What is too much to walk counts as all; plain blocks are counted at any size.
TEST(StoredElements, WorkIsBounded) {
  EXPECT_EQ(CountElements(Stored("[1000000000]",
                                 "axis i : loop 500000000\n%0 = const f32 1.0\nstore y[i], %0\n")),
            500000000);
  EXPECT_EQ(CountElements(Stored("[1000000000]",
                                 "axis i : loop 500000000\n%0 = const f32 1.0\n"
                                 "store y[2*i], %0\n")),
            1000000000);
}

}  // namespace
}  // namespace l3c::l0
