#include "tools/l3c/sweep/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/l3c/sweep/figures.h"

namespace l3c::tools::sweep {
namespace {

std::string KeyOf(const Summary& point) {
  std::vector<std::pair<std::string, std::string>> settings = point.settings;
  std::sort(settings.begin(), settings.end());
  std::string key = point.workload;
  for (const auto& [axis, label] : settings) key += "\n" + axis + "=" + label;
  return key;
}

// The least p-value that so many repeats can come to.
double LeastP(size_t n, size_t m) {
  double assignments = 1;
  for (double i = 1; i <= static_cast<double>(n); ++i) {
    assignments *= (static_cast<double>(m) + i) / i;
  }
  return 2 / assignments;
}

Difference CompareFigure(const Summary& a, const Summary& b, const Figure& figure) {
  const std::vector<double>& from = a.figures.at(std::string(figure.name));
  const std::vector<double>& to = b.figures.at(std::string(figure.name));
  Difference difference{&a, &b, std::string(figure.name), figure.measured};
  difference.median_a = SpreadOf(from).median;
  difference.median_b = SpreadOf(to).median;
  if (figure.measured && difference.median_a > 0) {
    difference.ratio = RatioOfMedians(from, to);
    difference.p = RankSumP(from, to);
  } else {
    const double ratio =
        difference.median_a == difference.median_b ? 1 : difference.median_b / difference.median_a;
    difference.ratio = {ratio, ratio, ratio};
    difference.p = difference.median_a == difference.median_b ? 1 : 0;
    difference.counts = difference.median_a != difference.median_b;
    difference.measured = false;
  }
  return difference;
}

}  // namespace

Comparison Compare(const Results& a, const Results& b) {
  Comparison comparison;
  std::map<std::string, const Summary*> others;
  for (const Summary& point : b.points) others[KeyOf(point)] = &point;
  for (const Summary& point : a.points) {
    const auto found = others.find(KeyOf(point));
    if (found == others.end()) {
      comparison.only_a.push_back(point.Label());
      continue;
    }
    const Summary& other = *found->second;
    others.erase(found);
    if (point.failed.empty() != other.failed.empty()) {
      comparison.fate.emplace_back(point.Label(), point.failed.empty()
                                                      ? "fails in the second: " + other.failed
                                                      : "failed in the first: " + point.failed);
      continue;
    }
    for (const Figure& figure : AllFigures()) {
      const std::string name(figure.name);
      if (!point.figures.contains(name) || !other.figures.contains(name)) continue;
      comparison.differences.push_back(CompareFigure(point, other, figure));
      if (figure.measured &&
          LeastP(point.figures.at(name).size(), other.figures.at(name).size()) > kDiscoveryRate) {
        ++comparison.hopeless;
      }
    }
  }
  for (const Summary& point : b.points) {
    if (others.contains(KeyOf(point))) comparison.only_b.push_back(point.Label());
  }
  std::vector<double> p;
  for (const Difference& difference : comparison.differences) {
    if (difference.measured) p.push_back(difference.p);
  }
  p = AdjustForMany(p);
  size_t at = 0;
  for (Difference& difference : comparison.differences) {
    if (!difference.measured) continue;
    difference.p = p[at++];
    difference.counts = difference.p <= kDiscoveryRate &&
                        std::abs(std::log(difference.ratio.value)) >= std::log1p(kLeastChange);
  }
  return comparison;
}

}  // namespace l3c::tools::sweep
