// A choice problem as rows of a linear program: what every choice satisfies, and cuts that a
// relaxation's values violate.
//
// A column stands for an e-node alive: 1 where it is chosen.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "egraph/extract/choice_problem.h"
#include "egraph/extract/implications.h"
#include "egraph/extract/linear_solver.h"
#include "egraph/extract/path_cuts.h"

namespace l3c::egraph {

using ClassCycle = std::vector<uint32_t>;  // classes, each with an e-node that uses the next

class ChoiceRows {
 public:
  // Values closer to a whole number are that number.
  static constexpr double kTolerance = 1e-6;

  // `problem` must outlive this and not change.
  explicit ChoiceRows(const ChoiceProblem& problem);

  const std::vector<uint32_t>& columns() const { return column_; }  // by e-node; kNone when dead
  const std::vector<uint32_t>& nodes() const { return nodes_; }     // by column
  // By class: its strongly connected component, kNone where it is on no cycle.
  const std::vector<uint32_t>& components() const { return component_; }

  // A class required has an e-node, a class used too; gains need a user. Cycles are not excluded.
  std::vector<LinearRow> Required() const;
  // Of the e-nodes of a class that contain another class, near or far, no more than that class:
  // the rows that `values` violate most.
  std::vector<LinearRow> Contained(std::span<const double> values);
  // A class that is not required is chosen for a user only, as in any choice without idle classes:
  // the rows that `values` violate.
  std::vector<LinearRow> Unused(std::span<const double> values);
  // What is chosen is reached (path_cuts.h): the rows that `values` violate, among so many looked
  // at.
  std::vector<LinearRow> Paths(std::span<const double> values, uint64_t max_work,
                               const TimeLimit& time);
  // Not every step of the cycle is chosen.
  LinearRow Exclude(const ClassCycle& cycle) const;
  // Two classes that use each other.
  std::vector<ClassCycle> PairCycles() const;
  // Cycles that `values` violate: a shortest closed walk, where an edge is as long as it is not
  // chosen, shorter than 1.
  std::vector<ClassCycle> FractionalCycles(std::span<const double> values) const;
  // By class used by `c`: the columns of the e-nodes that do, needs included unless `ordered_only`.
  std::map<uint32_t, std::vector<uint32_t>> EdgesFrom(uint32_t c, bool ordered_only) const;

 private:
  const ChoiceProblem& p_;
  std::vector<uint32_t> column_, nodes_, component_;
  // Null where they would take too much.
  const Implications* Implied();

  std::unique_ptr<Implications> implications_;
  std::unique_ptr<PathCuts> path_cuts_;
  std::vector<std::vector<uint32_t>> users_;  // by class: columns, once they were asked for
};

}  // namespace l3c::egraph
