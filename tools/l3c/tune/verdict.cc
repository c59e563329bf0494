#include "tools/l3c/tune/verdict.h"

#include <algorithm>
#include <cmath>

namespace l3c::tools::tune {

double MedianRatio(const Trial& trial) {
  if (trial.ratios.empty()) return 1;
  std::vector<double> sorted = trial.ratios;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double SignTestP(size_t wins, size_t turns) {
  double p = 0;
  double ways = 1;  // binomial coefficient of turns over k
  for (size_t k = 0; k <= turns; ++k) {
    if (k >= wins) p += ways;
    ways *= static_cast<double>(turns - k) / static_cast<double>(k + 1);
  }
  return p / std::pow(2.0, static_cast<double>(turns));
}

bool Faster(const Trial& trial) {
  if (trial.ratios.empty() || MedianRatio(trial) > 1 - kLeastGain) return false;
  const auto wins = static_cast<size_t>(std::count_if(trial.ratios.begin(), trial.ratios.end(),
                                                      [](double ratio) { return ratio < 1; }));
  return SignTestP(wins, trial.ratios.size()) * static_cast<double>(kFinalists) <= kSignificance;
}

int Winner(const Record& record) {
  int best = -1;
  for (size_t t = 0; t < record.trials.size(); ++t) {
    const Trial& trial = record.trials[t];
    if (!trial.refused.empty() || !trial.checked || !Faster(trial)) continue;
    if (best < 0 || MedianRatio(trial) < MedianRatio(record.trials[static_cast<size_t>(best)])) {
      best = static_cast<int>(t);
    }
  }
  return best;
}

}  // namespace l3c::tools::tune
