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
  // An e-node with a value. Flow comes to it from its class, or from outside where it is a source.
  struct Arc {
    uint32_t node;
    double value;
    double flow = 0;
    std::vector<uint32_t> to;     // classes
    std::vector<double> flow_to;  // of each
  };
  struct User {
    uint32_t arc, place;  // in the arc's `to`
  };
  // How a search came to a class from an arc, or to an arc from a class; `place` where it was along
  // a child, kNone where it was between an e-node and its class.
  struct Step {
    uint32_t id = kNone, place = kNone;
  };

  void Build(std::span<const double> values);
  // From the arcs in `sources_`, or from what is required where there are none, to `d`: how much
  // can flow, or more than is wanted but for what is not worth a cut.
  double Flow(uint32_t d, double wanted);
  // Sends more along one way; how much. 0 leaves the marks on what the sources reach.
  double Augment(uint32_t d);

  const ChoiceProblem& p_;
  const Implications& implications_;
  const std::span<const uint32_t> columns_;
  std::vector<uint32_t> required_;  // classes
  uint32_t next_class_ = 0;
  uint64_t work_ = 0;
  std::set<std::vector<std::pair<uint32_t, double>>> seen_;

  std::vector<Arc> arcs_;
  std::vector<std::vector<uint32_t>> class_arcs_;  // by class
  std::vector<std::vector<User>> users_;           // by class
  std::vector<double> chosen_;                     // by class: the sum of its values
  std::vector<uint32_t> sources_;                  // arcs
  std::vector<double> source_flow_;                // by arc
  std::vector<uint32_t> class_mark_, arc_mark_;
  uint32_t mark_ = 0;
  std::vector<Step> from_class_, from_arc_;
  std::vector<std::pair<uint32_t, bool>> queue_;  // a class where true, else an arc
  std::vector<uint64_t> contained_;
};

}  // namespace l3c::egraph
