#include "egraph/extract/choice_rows.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "egraph/extract/cost.h"

namespace l3c::egraph {
namespace {

constexpr size_t kMaxCutsAtOnce = 500;
constexpr double kMinViolation = 1e-3;

}  // namespace

ChoiceRows::ChoiceRows(const ChoiceProblem& problem)
    : p_(problem), component_(CyclicComponents(problem)) {
  column_.assign(p_.nodes.size(), kNone);
  for (uint32_t n = 0; n < p_.nodes.size(); ++n) {
    if (!p_.nodes[n].alive) continue;
    column_[n] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(n);
  }
}

std::map<uint32_t, std::vector<uint32_t>> ChoiceRows::EdgesFrom(uint32_t c,
                                                                bool ordered_only) const {
  std::map<uint32_t, std::vector<uint32_t>> columns;
  for (uint32_t n : p_.class_nodes[c]) {
    for (uint32_t d : p_.nodes[n].children) columns[d].push_back(column_[n]);
    if (ordered_only) continue;
    for (uint32_t d : p_.nodes[n].needs) columns[d].push_back(column_[n]);
  }
  return columns;
}

std::vector<LinearRow> ChoiceRows::Required() const {
  std::vector<LinearRow> rows;
  const bool gains = p_.HasNegativeCosts();
  std::vector<std::vector<uint32_t>> users(gains ? p_.class_count() : 0);
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (p_.class_nodes[c].empty()) continue;
    LinearRow own{{}, p_.required[c] ? 1.0 : -kInfinity, 1};
    for (uint32_t n : p_.class_nodes[c]) own.terms.emplace_back(column_[n], 1);
    if (p_.required[c] || gains) rows.push_back(own);
    // One row for all e-nodes of c that use d: c takes one of them at most.
    for (const auto& [d, columns] : EdgesFrom(c, false)) {
      if (gains) users[d].insert(users[d].end(), columns.begin(), columns.end());
      if (p_.required[d]) continue;
      LinearRow row{{}, -kInfinity, 0};
      for (uint32_t j : columns) row.terms.emplace_back(j, 1);
      for (uint32_t m : p_.class_nodes[d]) row.terms.emplace_back(column_[m], -1);
      rows.push_back(std::move(row));
    }
  }
  // A gain is had only where something uses it.
  for (uint32_t c = 0; gains && c < p_.class_count(); ++c) {
    if (p_.required[c] || p_.class_nodes[c].empty()) continue;
    LinearRow row{{}, -kInfinity, 0};
    for (uint32_t n : p_.class_nodes[c]) row.terms.emplace_back(column_[n], 1);
    for (uint32_t j : users[c]) row.terms.emplace_back(j, -1);
    rows.push_back(std::move(row));
  }
  return rows;
}

const Implications* ChoiceRows::Implied() {
  if (!implications_) implications_ = std::make_unique<Implications>(p_);
  return implications_->available() ? implications_.get() : nullptr;
}

std::vector<LinearRow> ChoiceRows::Paths(std::span<const double> values, uint64_t max_work,
                                         const TimeLimit& time) {
  if (Implied() == nullptr) return {};
  if (!path_cuts_) path_cuts_ = std::make_unique<PathCuts>(p_, *implications_, column_);
  return path_cuts_->Find(values, max_work, time);
}

std::vector<LinearRow> ChoiceRows::Contained(std::span<const double> values) {
  if (Implied() == nullptr) return {};
  struct Cut {
    double violation;
    uint32_t c, d;
  };
  std::vector<Cut> cuts;
  std::vector<double> chosen(p_.class_count(), 0), with(p_.class_count(), 0);
  for (uint32_t n : nodes_) chosen[p_.nodes[n].cls] += values[column_[n]];
  std::vector<uint64_t> contained;
  std::vector<uint32_t> touched;
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (p_.class_nodes[c].size() < 2 || chosen[c] < kTolerance) continue;
    touched.clear();
    for (uint32_t n : p_.class_nodes[c]) {
      const double value = values[column_[n]];
      if (value < kTolerance) continue;
      implications_->Contained(n, contained);
      for (size_t w = 0; w < contained.size(); ++w) {
        for (uint64_t bits = contained[w]; bits != 0; bits &= bits - 1) {
          const auto d = static_cast<uint32_t>(64 * w + std::countr_zero(bits));
          if (with[d] == 0) touched.push_back(d);
          with[d] += value;
        }
      }
    }
    for (uint32_t d : touched) {
      if (!p_.required[d] && with[d] > chosen[d] + kMinViolation) {
        cuts.push_back({with[d] - chosen[d], c, d});
      }
      with[d] = 0;
    }
  }
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) {
    return std::tie(b.violation, a.c, a.d) < std::tie(a.violation, b.c, b.d);
  });
  if (cuts.size() > kMaxCutsAtOnce) cuts.resize(kMaxCutsAtOnce);
  std::vector<LinearRow> rows;
  for (const Cut& cut : cuts) {
    LinearRow row{{}, -kInfinity, 0};
    for (uint32_t n : p_.class_nodes[cut.c]) {
      implications_->Contained(n, contained);
      if (ClassSets::Test(contained, cut.d)) row.terms.emplace_back(column_[n], 1);
    }
    for (uint32_t m : p_.class_nodes[cut.d]) row.terms.emplace_back(column_[m], -1);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LinearRow> ChoiceRows::Unused(std::span<const double> values) {
  if (users_.empty()) {
    users_.resize(p_.class_count());
    for (uint32_t n : nodes_) {
      for (uint32_t d : p_.nodes[n].children) users_[d].push_back(column_[n]);
      for (uint32_t d : p_.nodes[n].needs) users_[d].push_back(column_[n]);
    }
  }
  std::vector<LinearRow> rows;
  for (uint32_t d = 0; d < p_.class_count(); ++d) {
    if (p_.required[d]) continue;
    double violation = 0;
    for (uint32_t m : p_.class_nodes[d]) violation += values[column_[m]];
    for (uint32_t j : users_[d]) violation -= values[j];
    if (violation <= kMinViolation) continue;
    LinearRow row{{}, -kInfinity, 0};
    for (uint32_t m : p_.class_nodes[d]) row.terms.emplace_back(column_[m], 1);
    for (uint32_t j : users_[d]) row.terms.emplace_back(j, -1);
    rows.push_back(std::move(row));
  }
  return rows;
}

LinearRow ChoiceRows::Exclude(const ClassCycle& cycle) const {
  LinearRow row{{}, -kInfinity, static_cast<double>(cycle.size()) - 1};
  for (size_t i = 0; i < cycle.size(); ++i) {
    const uint32_t next = cycle[(i + 1) % cycle.size()];
    for (uint32_t n : p_.class_nodes[cycle[i]]) {
      const std::vector<uint32_t>& children = p_.nodes[n].children;
      if (std::binary_search(children.begin(), children.end(), next)) {
        row.terms.emplace_back(column_[n], 1);
      }
    }
  }
  return row;
}

std::vector<ClassCycle> ChoiceRows::PairCycles() const {
  std::vector<ClassCycle> cycles;
  std::set<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (component_[c] == kNone) continue;
    for (const auto& [d, columns] : EdgesFrom(c, true)) {
      if (component_[d] == component_[c]) edges.emplace(c, d);
    }
  }
  for (const auto& [c, d] : edges) {
    if (c < d && edges.contains({d, c})) cycles.push_back({c, d});
  }
  return cycles;
}

std::vector<ClassCycle> ChoiceRows::FractionalCycles(std::span<const double> values) const {
  std::vector<std::vector<std::pair<uint32_t, double>>> edges(p_.class_count());
  for (uint32_t c = 0; c < p_.class_count(); ++c) {
    if (component_[c] == kNone) continue;
    for (const auto& [d, columns] : EdgesFrom(c, true)) {
      if (component_[d] != component_[c]) continue;
      double chosen = 0;
      for (uint32_t j : columns) chosen += values[j];
      if (chosen > 0.02) edges[c].emplace_back(d, std::max(0.0, 1 - chosen));
    }
  }
  std::vector<ClassCycle> cycles;
  std::vector<double> distance(p_.class_count(), kInfinity);
  std::vector<uint32_t> before(p_.class_count(), kNone), touched;
  using Entry = std::pair<double, uint32_t>;
  std::vector<Entry> heap;
  for (uint32_t start = 0; start < p_.class_count() && cycles.size() < kMaxCutsAtOnce; ++start) {
    if (edges[start].empty()) continue;
    for (uint32_t c : touched) distance[c] = kInfinity;
    touched.clear();
    heap.clear();
    const auto relax = [&](uint32_t from, double at) {
      for (const auto& [d, length] : edges[from]) {
        // Classes below the start have had their turn.
        if (d < start || at + length >= std::min(distance[d], 0.99)) continue;
        if (!(distance[d] < kInfinity)) touched.push_back(d);
        distance[d] = at + length;
        before[d] = from;
        heap.emplace_back(distance[d], d);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
      }
    };
    relax(start, 0);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      const auto [at, c] = heap.back();
      heap.pop_back();
      if (at > distance[c]) continue;
      if (c == start) break;
      relax(c, at);
    }
    if (!(distance[start] < kInfinity)) continue;
    ClassCycle cycle{start};
    for (uint32_t c = before[start]; c != start; c = before[c]) cycle.push_back(c);
    std::reverse(cycle.begin() + 1, cycle.end());
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace l3c::egraph
