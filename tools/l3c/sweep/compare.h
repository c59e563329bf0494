// l3c sweep compare A B: which differences between two sweeps exceed the noise.
//
// Points are the same where workload and settings are. Of a measured figure the repeats of both are
// compared by the two-sided Mann–Whitney test; the p-values of all comparisons together are
// adjusted for their number (Benjamini and Hochberg), and a difference counts where the adjusted
// one is at most 0.05 and the medians are at least 1 % apart. A figure that is the same every time
// differs where it is not the same.
#pragma once

#include <string>
#include <vector>

#include "tools/l3c/sweep/statistics.h"
#include "tools/l3c/sweep/summary.h"

namespace l3c::tools::sweep {

inline constexpr double kDiscoveryRate = 0.05;
inline constexpr double kLeastChange = 0.01;

struct Difference {
  const Summary* a = nullptr;
  const Summary* b = nullptr;
  std::string figure;
  bool measured = false;
  double median_a = 0;
  double median_b = 0;
  Ratio ratio;   // of b over a; all three the same where it is not measured
  double p = 1;  // adjusted
  bool counts = false;
};

struct Comparison {
  std::vector<Difference> differences;  // of all figures that both have, in the points' order
  std::vector<std::string> only_a;      // labels of points
  std::vector<std::string> only_b;
  std::vector<std::pair<std::string, std::string>>
      fate;  // points that failed in one alone, and why
  // Measured figures of so few repeats that no outcome could count.
  size_t hopeless = 0;
};
Comparison Compare(const Results& a, const Results& b);

}  // namespace l3c::tools::sweep
