// Exact extraction by DAG cost: the cheapest acyclic choice, with a bound that proves it.
//
// The problem is reduced (choice_problem.h), cut into parts that share nothing, and each part
// solved on its own: an incumbent from the search of local_search.h, a lower bound from a linear
// relaxation with cycle cuts, e-nodes priced out by the two, what is left by branch and bound
// (COIN-OR Cbc). Cycles are excluded lazily: a cycle found in a solution becomes an inequality.
//
// Anytime: any limit leaves the best choice found and a lower bound. Without Cbc
// (LinearSolver::Available()) only the reductions and the incumbent are had, and the gap tells.
//
// Beyond children, a choice may have to satisfy:
//  - requirements: an e-node (or the caller) requires a class, unordered, at its own frequency;
//  - resource bounds: Σ use ≤ limit over the e-nodes chosen;
//  - lazy bounds: a callback looks at a whole choice and returns the bounds that it violates.
//
// Figures hold to 1e-6 of the cost, the tolerance of the solvers; with gains, to 1e-6 of the
// largest price among what the reductions leave. Work limits give the same result on every run; a
// limit in seconds may not.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "egraph/extract/node_graph.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

// Choosing `node` requires `needs` as well, without ordering the two. An invalid `node` requires it
// always. `frequency` in (0, 1] is how often per step the requirement holds: e-nodes that only
// serve this need are weighed by it, and what a more frequent need has chosen is had for nothing.
// A node that is itself needed more rarely requires at its own frequency.
struct Requirement {
  ENodeRef node;
  ClassRef needs;
  double frequency = 1;
};

// Σ coefficient over the chosen e-nodes ≤ limit; coefficients ≥ 0. An e-node counts whole however
// rarely it is needed.
struct ChoiceBound {
  std::vector<std::pair<ENodeRef, double>> terms;  // each e-node once
  double limit = 0;
};

// The bounds violated by a choice (by class, invalid where not reached); none accepts it. Must
// depend on the choice only, and every bound returned must be violated by it.
using LazyBounds = std::function<std::vector<ChoiceBound>(std::span<const ENodeRef> choice)>;

struct ExactOptions {
  std::map<ClassRef, ENodeRef> forced;
  std::vector<Requirement> requirements;
  std::vector<ChoiceBound> bounds;
  LazyBounds lazy_bounds;
  // Of all branch-and-bound runs together.
  uint64_t max_branch_nodes = 1'000'000;
  // Of each incumbent search, in steps of local_search.h.
  uint64_t max_search_work = 100'000'000;
  // To abort; by the wall clock or by the thread's processor time.
  double max_seconds = std::numeric_limits<double>::infinity();
  TimeKind time_kind = TimeKind::kWall;
};

struct ExactSolution {
  // What of the options makes no sense; nothing is solved then. Empty where all does.
  std::string error;
  bool feasible = false;    // a choice was found
  bool infeasible = false;  // proven: there is none
  bool optimal = false;     // proven, to the tolerance above
  bool out_of_time = false;
  bool out_of_work = false;
  // By class: the e-node taken, invalid where the class is not reached.
  std::vector<ENodeRef> choice;
  // By class: the frequency that the class is needed at, 0 where it is not reached.
  std::vector<double> frequency;
  double cost = std::numeric_limits<double>::infinity();
  double lower_bound = 0;
  // (cost − lower bound) / |cost|; 0 when optimal.
  double gap = 1;
  // How it was found.
  uint64_t classes = 0, nodes = 0;                  // that the roots can reach, before reductions
  uint64_t reduced_classes = 0, reduced_nodes = 0;  // left by them
  uint64_t parts = 0;
  uint64_t branch_nodes = 0;
  uint64_t cycle_cuts = 0;
  uint64_t lazy_bounds = 0;
};

// `prices` by e-node; infinity or NaN forbids, negative ones are gains. Roots are required at
// frequency 1. Invalid roots or roots without a term make it infeasible.
ExactSolution SolveExact(const NodeGraph& graph, std::span<const double> prices,
                         std::span<const ClassRef> roots, const ExactOptions& options = {});

}  // namespace l3c::egraph
