#include "egraph/extract/term_costs.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace l3c::egraph {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

}  // namespace

TermCosts::TermCosts(const ChoiceProblem& problem, std::span<const double> prices, Needs needs)
    : cost(problem.class_count(), std::numeric_limits<double>::infinity()),
      node(problem.class_count(), kNone) {
  const std::vector<ChoiceNode>& nodes = problem.nodes;
  const auto allowed = [&](uint32_t n) {
    return nodes[n].alive && (needs == Needs::kIgnored || nodes[n].needs.empty());
  };
  // The e-nodes with each class among their children.
  std::vector<uint32_t> first(problem.class_count() + 1, 0);
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    if (!allowed(n)) continue;
    for (uint32_t c : nodes[n].children) ++first[c + 1];
  }
  for (size_t c = 1; c < first.size(); ++c) first[c] += first[c - 1];
  std::vector<uint32_t> users(first.back()), next(first.begin(), first.end() - 1);

  // Cheapest first: what is found for a class is never regretted.
  std::vector<std::pair<double, uint32_t>> heap;
  std::vector<uint32_t> missing(nodes.size(), 0);
  std::vector<double> sum(nodes.size(), 0);
  const auto push = [&](uint32_t n) {
    heap.emplace_back(sum[n], n);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    if (!allowed(n)) continue;
    for (uint32_t c : nodes[n].children) users[next[c]++] = n;
    missing[n] = static_cast<uint32_t>(nodes[n].children.size());
    sum[n] = std::max(0.0, prices[n]);
    if (missing[n] == 0) push(n);
  }
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto [least, n] = heap.back();
    heap.pop_back();
    const uint32_t c = nodes[n].cls;
    if (node[c] != kNone) continue;
    cost[c] = least;
    node[c] = n;
    for (uint32_t i = first[c]; i < first[c + 1]; ++i) {
      const uint32_t user = users[i];
      sum[user] = std::min(kLargest, sum[user] + least);
      if (--missing[user] == 0) push(user);
    }
  }
}

}  // namespace l3c::egraph
