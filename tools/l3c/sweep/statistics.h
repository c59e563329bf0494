// What repeated times say: medians, spreads, and whether two of them differ beyond the noise.
#pragma once

#include <string>
#include <vector>

namespace l3c::tools::sweep {

// Quartiles by linear interpolation between order statistics.
struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};
Spread SpreadOf(std::vector<double> values);  // of at least one

// Two-sided p-value of the Mann–Whitney rank sum test that both come from one distribution, with
// mid-ranks for ties: exact over all assignments of the ranks to the two up to kMaxAssignments of
// them, else by the normal approximation with the correction for ties.
inline constexpr double kMaxAssignments = 200'000;
double RankSumP(const std::vector<double>& a, const std::vector<double>& b);

// Of each p-value, the least false discovery rate at which it counts (Benjamini and Hochberg).
std::vector<double> AdjustForMany(const std::vector<double>& p);

// median(b) / median(a), with the interval that holds 95 % of what resampling both gives. The
// resampling draws the same numbers every time.
struct Ratio {
  double low = 0;
  double value = 0;
  double high = 0;
};
Ratio RatioOfMedians(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace l3c::tools::sweep
