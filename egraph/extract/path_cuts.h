// Cuts by paths: what a chosen e-node contains is reached from it through chosen e-nodes.
//
// Let N be the e-nodes of a class that contain class d, near or far (implications.h). In a choice
// that has one of them, chosen e-nodes lead from it to d, and d is chosen. So for every set S of
// classes around N, without d or with it, the e-nodes that lead out of S, and d where it is in S,
// are chosen at least as often as those of N:
//   Σ x(n), n in N  ≤  Σ x(m), m of a class in S with a child or need outside  +  [d in S] Σ x(d).
// Likewise a class that is not required is reached from those that are. A relaxation that halves
// what it shares among many users violates these; which ones, a least cut tells: a flow from N to d
// in which no e-node carries more than its value.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/implications.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

class PathCuts {
 public:
  // `columns` by e-node; all must outlive this.
  PathCuts(const ChoiceProblem& problem, const Implications& implications,
           std::span<const uint32_t> columns);

  // Rows that `values`, by column, violate, the most violated first; none that was returned before.
  // Looks at about `max_work` e-nodes; the next call goes on behind.
  std::vector<LinearRow> Find(std::span<const double> values, uint64_t max_work,
                              const TimeLimit& time);

 private:
  static constexpr uint32_t kNone = ChoiceProblem::kNone;
  // An e-node with a value, in the network of one call.
  struct Arc {
    uint32_t node;
    double value;
    double flow = 0;
    std::vector<uint32_t> to;      // classes
    std::vector<double> flow_to;   // of each
  };
  struct User {
    uint32_t arc, place;  // in the arc's `to`
  };

  void Build(std::span<const double> values);
  // Flows from the e-nodes in `sources_`, each at most its value, or from all required classes
  // where there are none, to `d`. False when `wanted` is reached; else reached_ marks the side of
  // the sources in a least cut.
  bool IsCut(uint32_t d, double wanted);
  bool Augment(uint32_t d, double most, double* flow);
  void Clear();
  void Take(uint32_t c, uint32_t d, double wanted, double flow);

  const ChoiceProblem& p_;
  const Implications& implications_;
  const std::span<const uint32_t> columns_;
  uint32_t next_class_ = 0;
  uint64_t work_ = 0;
  std::set<std::vector<std::pair<uint32_t, double>>> seen_;

  std::vector<Arc> arcs_;
  std::vector<std::vector<uint32_t>> class_arcs_;  // by class
  std::vector<std::vector<User>> users_;           // by class
  std::vector<double> chosen_;                     // by class: the sum of its values
  std::vector<uint32_t> sources_;                  // arcs
  std::vector<double> source_flow_;                // by arc
  double sink_flow_ = 0;
};

}  // namespace l3c::egraph
