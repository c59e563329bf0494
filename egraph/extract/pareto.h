// Fronts of terms under several additive costs and resource bounds.
//
// For refinement graphs: acyclic, each class a choice, each e-node the combination of its
// children's choices, shared classes counted at every use. A partial solution of a class is a
// vector of sums; one that exceeds an upper bound in some component can only grow, so it is cut;
// one that k others of its class beat or equal in every component cannot be among the best k of
// anything monotone, so it is cut too. What is left of a class is its k-skyband.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "egraph/view.h"

namespace l3c::egraph {

inline constexpr size_t kMaxParetoComponents = 8;
using ParetoCost = std::array<double, kMaxParetoComponents>;

struct ParetoOptions {
  size_t components = 1;  // of ParetoCost that are in use
  // The e-node's own share of each component, ≥ 0; infinity forbids it.
  std::function<ParetoCost(const EGraphView&, ENodeRef)> node_cost;
  // Inclusive; infinity where there is no bound.
  ParetoCost upper_bounds = Unbounded();
  // A term is dropped when this many others are no worse in every component. 1: the plain front.
  size_t k = 1;
  // Bound on partial solutions looked at. Beyond it, classes keep only their first solutions, and
  // the result says so.
  uint64_t max_work = 50'000'000;

  static ParetoCost Unbounded() {
    ParetoCost c;
    c.fill(std::numeric_limits<double>::infinity());
    return c;
  }
};

// A complete term: e-nodes in prefix order, children after their parent, left to right; a shared
// class occurs at every use.
struct ParetoTerm {
  ParetoCost cost{};
  std::vector<ENodeRef> nodes;
};

struct ParetoResult {
  // By cost, lexicographically, then by e-node order: the same on every run.
  std::vector<ParetoTerm> terms;
  bool acyclic = true;      // false: the graph below the root has a cycle; no terms then
  uint64_t considered = 0;  // partial solutions built
  uint64_t dominated = 0;   // cut by dominance
  std::array<uint64_t, kMaxParetoComponents> over_bound{};  // cut by the first bound exceeded
  bool work_exhausted = false;
};

ParetoResult ParetoExtract(const EGraphView& view, ClassRef root, const ParetoOptions& options);

// Distinct terms below `root`, each e-node counted with the product of its children. A double:
// exact up to 2^53, then rounded, infinity beyond its range or when the graph has a cycle.
double CountTerms(const EGraphView& view, ClassRef root);
// Of one term for each of the roots: the product, in one pass over the graph.
double CountTerms(const EGraphView& view, std::span<const ClassRef> roots);

}  // namespace l3c::egraph
