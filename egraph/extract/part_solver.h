// One part of a reduced choice problem, solved to the end or to a limit.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

// Σ coefficient over the e-nodes chosen ≤ limit.
struct NodeBound {
  std::vector<std::pair<uint32_t, double>> terms;
  double limit = 0;
};

struct ChoiceAnswer {
  bool feasible = false;    // `choice` is one
  bool infeasible = false;  // proven: there is none
  double cost = std::numeric_limits<double>::infinity();
  double bound = -std::numeric_limits<double>::infinity();  // no choice costs less
  std::vector<uint32_t> choice;  // by class: an e-node wherever it is reached
};

class PartSolver {
 public:
  struct Limits {
    uint64_t max_branch_nodes;
    uint64_t max_search_work;
    TimeLimit time;
  };
  struct Counts {
    uint64_t parts = 0, branch_nodes = 0, cycle_cuts = 0, lazy_bounds = 0;
    bool out_of_time = false, out_of_work = false;
  };
  // The bounds that a choice (by class, kNone where not reached) violates.
  using LazyNodeBounds = std::function<std::vector<NodeBound>(std::span<const uint32_t> choice)>;

  explicit PartSolver(const Limits& limits) : limits_(limits) {}
  // With bounds of either kind the problem is left whole.
  void SetBounds(std::vector<NodeBound> bounds, LazyNodeBounds lazy);

  ChoiceAnswer Solve(ChoiceProblem problem);
  const Counts& counts() const { return counts_; }
  // Of the first problem handed in, after reductions: classes, e-nodes.
  std::pair<uint64_t, uint64_t> reduced_size() const {
    return reduced_size_.value_or(std::pair<uint64_t, uint64_t>{0, 0});
  }

 private:
  class Part;

  bool bounded() const { return !bounds_.empty() || lazy_; }
  // Infinity without a deadline; notes when it has passed.
  double SecondsLeft();

  Limits limits_;
  std::vector<NodeBound> bounds_;
  LazyNodeBounds lazy_;
  Counts counts_;
  std::optional<std::pair<uint64_t, uint64_t>> reduced_size_;
};

}  // namespace l3c::egraph
