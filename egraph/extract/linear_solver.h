// Linear programs over variables in [0, 1], and the same with variables 0 or 1: COIN-OR's Clp
// and Cbc behind the few calls that exact extraction makes. Where the library is not installed the
// build leaves it out and LinearSolver::Available() is false.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

// low ≤ Σ coefficient · variable ≤ high; infinities where one side is open.
struct LinearRow {
  std::vector<std::pair<uint32_t, double>> terms;  // each variable once
  double low = 0;
  double high = 0;
};

enum class LinearStatus : uint8_t {
  kOptimal,
  kInfeasible,  // of SolveInteger: or nothing below the cutoff
  kStopped,     // by a limit, or by the solver's own trouble
};

class LinearSolver {
 public:
  // Minimises Σ cost · variable. Variables that are not `whole` are free to be fractions in
  // SolveInteger() as well.
  LinearSolver(std::span<const double> costs, std::span<const uint8_t> whole);
  ~LinearSolver();
  LinearSolver(const LinearSolver&) = delete;
  LinearSolver& operator=(const LinearSolver&) = delete;

  static bool Available();

  void AddRows(std::span<const LinearRow> rows);

  // The relaxation; starts from the last one's basis. values() and the rest are its own.
  LinearStatus SolveRelaxation(const TimeLimit& time);
  std::span<const double> values() const;
  // No solution costs less, and none with variable j at 1 less than bound() + what it adds. Made of
  // the dual values alone, so neither the solver's tolerances nor a limit that stopped it matter;
  // only rounding does.
  double bound() const;
  std::span<const double> added() const;

  struct Integer {
    LinearStatus status = LinearStatus::kStopped;
    std::vector<double> values;  // empty when none was found
    double bound = 0;            // no solution costs less, unless it is above the cutoff
    uint64_t branch_nodes = 0;
  };
  // Only solutions cheaper than `cutoff` are looked for. Without cuts and heuristics a branch is
  // much cheaper and its bound weaker.
  Integer SolveInteger(double cutoff, const TimeLimit& time, uint64_t max_branch_nodes,
                       bool cuts) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace l3c::egraph
