#include "tools/l3c/sweep/statistics.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace l3c::tools::sweep {
namespace {

TEST(Spread, QuartilesLieBetweenOrderStatistics) {
  const Spread spread = SpreadOf({4, 1, 3, 2, 5});
  EXPECT_EQ(spread.low, 2);
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.high, 4);
  EXPECT_EQ(SpreadOf({1, 2}).median, 1.5);
  EXPECT_EQ(SpreadOf({7}).high, 7);
}

// Published tables of the statistic: U = 0 has 2 of C(n + m, n) assignments at least as far out.
TEST(RankSum, ExactForSmallSamples) {
  EXPECT_DOUBLE_EQ(RankSumP({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(RankSumP({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(RankSumP({1, 2, 3}, {4, 5, 6}), 0.1);
  EXPECT_DOUBLE_EQ(RankSumP({1, 2, 4}, {3, 5, 6}), 0.2);
  EXPECT_DOUBLE_EQ(RankSumP({1, 1, 1}, {1, 1, 1}), 1);
}

TEST(RankSum, ApproximateForLargeOnesAgrees) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> a, b;
  for (int i = 0; i < 30; ++i) {
    a.push_back(normal(random));
    b.push_back(normal(random) + 2);
  }
  EXPECT_LT(RankSumP(a, b), 1e-6);
  EXPECT_GT(RankSumP(a, a), 0.9);
}

// Of samples of one distribution, a share of 5 % is called different at 5 %, not more.
TEST(RankSum, IsRarelyWrong) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> a(5), b(5);
    for (double& value : a) value = normal(random);
    for (double& value : b) value = normal(random);
    wrong += RankSumP(a, b) <= 0.05;
  }
  EXPECT_LT(wrong, 2000 * 0.05);
  EXPECT_GT(wrong, 2000 * 0.01);
}

// The example of Benjamini and Hochberg (1995), section 3.2: at 5 % the four least are discoveries.
TEST(Adjust, FollowsThePublishedExample) {
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> adjusted = AdjustForMany(p);
  int found = 0;
  for (double value : adjusted) found += value <= 0.05;
  EXPECT_EQ(found, 4);
  for (size_t i = 1; i < p.size(); ++i) EXPECT_LE(adjusted[i - 1], adjusted[i]);
}

TEST(RatioOfMedians, HoldsTheTruthAndIsTheSameEveryTime) {
  const std::vector<double> a = {10, 10.1, 9.9, 10.05, 9.95};
  const std::vector<double> b = {12, 12.1, 11.9, 12.05, 11.95};
  const Ratio ratio = RatioOfMedians(a, b);
  EXPECT_NEAR(ratio.value, 1.2, 1e-9);
  EXPECT_LT(ratio.low, 1.2);
  EXPECT_GT(ratio.high, 1.2);
  EXPECT_GT(ratio.low, 1.15);
  EXPECT_EQ(RatioOfMedians(a, b).low, ratio.low);
}

}  // namespace
}  // namespace l3c::tools::sweep
