#include "tools/l3c/sweep/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

namespace l3c::tools::sweep {
namespace {

double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

// Ranks of both together, ties at the middle of theirs; those of a come first.
std::vector<double> MidRanks(const std::vector<double>& a, const std::vector<double>& b,
                             double& ties) {
  std::vector<double> all(a);
  all.insert(all.end(), b.begin(), b.end());
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return all[x] < all[y]; });
  std::vector<double> ranks(all.size());
  ties = 0;
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && all[order[end]] == all[order[i]]) ++end;
    const double middle = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (size_t k = i; k < end; ++k) ranks[order[k]] = middle;
    const auto count = static_cast<double>(end - i);
    ties += count * count * count - count;
    i = end;
  }
  return ranks;
}

// How many assignments of `left` more ranks, from the one at `from` on, end with a sum at least as
// far from the expected one.
void Count(const std::vector<double>& ranks, size_t from, size_t left, double sum, double expected,
           double distance, uint64_t& extreme, uint64_t& all) {
  if (left == 0) {
    ++all;
    if (std::abs(sum - expected) >= distance - 1e-9) ++extreme;
    return;
  }
  for (size_t i = from; i + left <= ranks.size(); ++i) {
    Count(ranks, i + 1, left - 1, sum + ranks[i], expected, distance, extreme, all);
  }
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {Quantile(values, 0.25), Quantile(values, 0.5), Quantile(values, 0.75)};
}

double RankSumP(const std::vector<double>& a, const std::vector<double>& b) {
  double ties = 0;
  const std::vector<double> ranks = MidRanks(a, b, ties);
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double sum =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<int64_t>(a.size()), 0.0);
  const double expected = n * (n + m + 1) / 2;
  const double distance = std::abs(sum - expected);
  double assignments = 1;
  for (double i = 1; i <= n; ++i) assignments *= (m + i) / i;
  if (assignments <= kMaxAssignments) {
    uint64_t extreme = 0, all = 0;
    Count(ranks, 0, a.size(), 0, expected, distance, extreme, all);
    return static_cast<double>(extreme) / static_cast<double>(all);
  }
  const double variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)));
  if (variance <= 0) return 1;
  return std::erfc(std::max(0.0, distance - 0.5) / std::sqrt(2 * variance));
}

std::vector<double> AdjustForMany(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return p[x] > p[y]; });
  std::vector<double> adjusted(p.size());
  double least = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto rank = static_cast<double>(p.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

Ratio RatioOfMedians(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr size_t kResamples = 2000;
  std::mt19937_64 random(1);
  const auto resampled = [&](const std::vector<double>& from) {
    std::vector<double> drawn(from.size());
    for (double& value : drawn) value = from[random() % from.size()];
    return MedianOf(std::move(drawn));
  };
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) ratio = resampled(b) / resampled(a);
  std::sort(ratios.begin(), ratios.end());
  return {Quantile(ratios, 0.025), MedianOf(b) / MedianOf(a), Quantile(ratios, 0.975)};
}

}  // namespace l3c::tools::sweep
