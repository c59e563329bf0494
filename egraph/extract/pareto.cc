#include "egraph/extract/pareto.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "egraph/extract/cost.h"

namespace l3c::egraph {
namespace {

// Classes below the roots, children first, through the e-nodes that `usable` admits; nothing when
// one of them reaches itself.
template <typename Usable>
std::optional<std::vector<ClassRef>> Topological(const EGraphView& view,
                                                 std::span<const ClassRef> roots, Usable&& usable) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> colors(view.class_count(), kNew);
  std::vector<ClassRef> order;
  struct Frame {
    uint32_t c, node, child;
  };
  std::vector<Frame> stack;
  const auto open = [&](uint32_t c) {
    colors[c] = kOpen;
    stack.push_back({c, view.FirstNode(ClassRef{c}).index, 0});
  };
  for (ClassRef root : roots) {
    if (colors[root.index] == kNew) open(root.index);
    while (!stack.empty()) {
      Frame& top = stack.back();
      const uint32_t end =
          view.FirstNode(ClassRef{top.c}).index + view.NodeCountOf(ClassRef{top.c});
      bool descended = false;
      for (; top.node < end && !descended; ++top.node, top.child = 0) {
        if (!usable(ENodeRef{top.node})) continue;
        const std::span<const ClassRef> children = view.NodeChildren(ENodeRef{top.node});
        while (top.child < children.size() && colors[children[top.child].index] == kDone) {
          ++top.child;
        }
        if (top.child == children.size()) continue;
        const uint32_t child = children[top.child].index;
        if (colors[child] == kOpen) return std::nullopt;
        open(child);
        descended = true;
        break;
      }
      if (descended) continue;
      colors[top.c] = kDone;
      order.push_back(ClassRef{top.c});
      stack.pop_back();
    }
  }
  return order;
}

bool HasAllChildren(const EGraphView& view, ENodeRef n) {
  const std::span<const ClassRef> children = view.NodeChildren(n);
  return std::all_of(children.begin(), children.end(), [](ClassRef c) { return c.valid(); });
}

class Front {
 public:
  Front(const EGraphView& view, const ParetoOptions& options)
      : view_(view), options_(options), solutions_(view.class_count()) {}

  ParetoResult Extract(ClassRef root) {
    if (!root.valid()) return std::move(result_);
    node_costs_.reserve(view_.node_count());
    for (uint32_t n = 0; n < view_.node_count(); ++n) {
      ParetoCost cost = options_.node_cost(view_, ENodeRef{n});
      bool fine = HasAllChildren(view_, ENodeRef{n});
      for (size_t i = 0; i < options_.components; ++i) fine &= cost[i] < kInfinity;
      if (!fine) cost[0] = kInfinity;
      node_costs_.push_back(cost);
    }
    const auto order = Topological(view_, std::span(&root, 1),
                                   [&](ENodeRef n) { return node_costs_[n.index][0] < kInfinity; });
    if (!order) {
      result_.acyclic = false;
      return std::move(result_);
    }
    for (ClassRef c : *order) Solve(c);
    for (uint32_t s = 0; s < solutions_[root.index].size(); ++s) Emit(root, s);
    return std::move(result_);
  }

 private:
  // One way to have a class: an e-node and a solution of each of its children.
  struct Solution {
    ParetoCost cost{};
    ENodeRef node;
    uint32_t first_pick = 0;  // into picks_
  };
  struct Partial {
    ParetoCost cost;
    uint32_t previous;  // partial for the children before, into trail_
    uint32_t pick;
  };

  bool WithinBounds(const ParetoCost& cost) {
    for (size_t i = 0; i < options_.components; ++i) {
      if (cost[i] <= options_.upper_bounds[i]) continue;
      ++result_.over_bound[i];
      return false;
    }
    return true;
  }

  bool Spend(uint64_t work) {
    work_ += work;
    result_.work_exhausted |= work_ > options_.max_work;
    return !result_.work_exhausted;
  }

  bool NoWorse(const ParetoCost& a, const ParetoCost& b) const {
    for (size_t i = 0; i < options_.components; ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }

  // Sorts by cost, ties as they come, and keeps the k-skyband: whatever beats an entry stands
  // before it, and an entry that was dropped was beaten by k that stay, so counting those is
  // enough.
  template <typename Entry>
  void KeepSkyband(std::vector<Entry>& entries) {
    std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
      for (size_t i = 0; i < options_.components; ++i) {
        if (a.cost[i] != b.cost[i]) return a.cost[i] < b.cost[i];
      }
      return false;
    });
    const size_t limit = result_.work_exhausted ? std::max<size_t>(1, options_.k) : entries.size();
    size_t kept = 0;
    for (size_t e = 0; e < entries.size() && kept < limit; ++e) {
      size_t better = 0;
      for (size_t i = 0; i < kept && better < options_.k; ++i) {
        better += NoWorse(entries[i].cost, entries[e].cost);
      }
      Spend(1 + kept / 8);
      if (better >= std::max<size_t>(1, options_.k)) {
        ++result_.dominated;
      } else {
        if (kept != e) entries[kept] = entries[e];
        ++kept;
      }
    }
    entries.resize(kept);
  }

  void Solve(ClassRef c) {
    std::vector<Solution>& own = solutions_[c.index];
    for (uint32_t i = 0; i < view_.NodeCountOf(c); ++i) {
      const ENodeRef n{view_.FirstNode(c).index + i};
      const ParetoCost& cost = node_costs_[n.index];
      if (!(cost[0] < kInfinity)) continue;
      SolveNode(n, cost, own);
    }
    KeepSkyband(own);
  }

  void SolveNode(ENodeRef n, const ParetoCost& cost, std::vector<Solution>& own) {
    ++result_.considered;
    if (!WithinBounds(cost)) return;
    trail_.assign(1, Partial{cost, 0, 0});
    std::vector<std::pair<uint32_t, uint32_t>> ranges{{0, 1}};
    partials_.assign(1, trail_[0]);
    const std::span<const ClassRef> children = view_.NodeChildren(n);
    for (ClassRef child : children) {
      const uint32_t base = ranges.back().first;
      const auto before = static_cast<uint32_t>(partials_.size());
      next_.clear();
      for (uint32_t p = 0; p < before; ++p) {
        const std::vector<Solution>& options = solutions_[child.index];
        for (uint32_t s = 0; s < options.size(); ++s) {
          // Out of work: only the first option, so that something complete comes out.
          if (!Spend(1) && s > 0) break;
          ++result_.considered;
          Partial partial{partials_[p].cost, base + p, s};
          for (size_t i = 0; i < options_.components; ++i) partial.cost[i] += options[s].cost[i];
          if (WithinBounds(partial.cost)) next_.push_back(partial);
        }
      }
      KeepSkyband(next_);
      if (next_.empty()) return;
      ranges.emplace_back(static_cast<uint32_t>(trail_.size()),
                          static_cast<uint32_t>(trail_.size() + next_.size()));
      trail_.insert(trail_.end(), next_.begin(), next_.end());
      std::swap(partials_, next_);
    }
    for (uint32_t p = 0; p < partials_.size(); ++p) {
      Solution s{partials_[p].cost, n, static_cast<uint32_t>(picks_.size())};
      picks_.resize(picks_.size() + children.size());
      uint32_t at = ranges.back().first + p;
      for (size_t i = children.size(); i-- > 0;) {
        picks_[s.first_pick + i] = trail_[at].pick;
        at = trail_[at].previous;
      }
      own.push_back(s);
    }
  }

  void Emit(ClassRef root, uint32_t solution) {
    ParetoTerm term;
    term.cost = solutions_[root.index][solution].cost;
    std::vector<std::pair<uint32_t, uint32_t>> stack{{root.index, solution}};
    while (!stack.empty()) {
      const auto [c, s] = stack.back();
      stack.pop_back();
      const Solution& chosen = solutions_[c][s];
      term.nodes.push_back(chosen.node);
      const std::span<const ClassRef> children = view_.NodeChildren(chosen.node);
      for (size_t i = children.size(); i-- > 0;) {
        stack.emplace_back(children[i].index, picks_[chosen.first_pick + i]);
      }
    }
    result_.terms.push_back(std::move(term));
  }

  const EGraphView& view_;
  const ParetoOptions& options_;
  ParetoResult result_;
  uint64_t work_ = 0;
  std::vector<ParetoCost> node_costs_;
  std::vector<std::vector<Solution>> solutions_;  // by class
  std::vector<uint32_t> picks_;
  std::vector<Partial> partials_, next_, trail_;
};

}  // namespace

ParetoResult ParetoExtract(const EGraphView& view, ClassRef root, const ParetoOptions& options) {
  return Front(view, options).Extract(root);
}

double CountTerms(const EGraphView& view, ClassRef root) {
  return CountTerms(view, std::span(&root, 1));
}

double CountTerms(const EGraphView& view, std::span<const ClassRef> roots) {
  for (ClassRef root : roots) {
    if (!root.valid()) return 0;
  }
  std::vector<bool> usable(view.node_count());
  for (uint32_t n = 0; n < view.node_count(); ++n) usable[n] = HasAllChildren(view, ENodeRef{n});
  const auto order = Topological(view, roots, [&](ENodeRef n) { return usable[n.index]; });
  if (!order) return kInfinity;
  std::vector<double> counts(view.class_count(), 0);
  const auto times = [](double a, double b) { return a == 0 || b == 0 ? 0 : a * b; };
  for (ClassRef c : *order) {
    double sum = 0;
    for (uint32_t i = 0; i < view.NodeCountOf(c); ++i) {
      const ENodeRef n{view.FirstNode(c).index + i};
      if (!usable[n.index]) continue;
      double product = 1;
      for (ClassRef child : view.NodeChildren(n)) product = times(product, counts[child.index]);
      sum += product;
    }
    counts[c.index] = sum;
  }
  double product = 1;
  for (ClassRef root : roots) product = times(product, counts[root.index]);
  return product;
}

}  // namespace l3c::egraph
