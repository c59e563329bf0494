// The best way to save and compute again when the backward pass undoes the forward pass in order.
//
// The dynamic program of Rotor (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal
// checkpointing for heterogeneous chains, 2019; Revolve, Griewank and Walther 2000, is its case of
// equal layers), over cuts of the forward pass instead of layers, so that it takes any graph:
//
//   C(i, j)   the cheapest way through the launches of the backward pass that need what was made
//             between cuts i and j, when all that crosses cut i is there and nothing behind it is
//   leaf      run (i, i+1] and keep what its backward launches read
//   split     run up to cut k and keep what crosses it; C(k, j); C(i, k), which runs (i, k] again
//   keep      run (i, i+1], keep also what its backward launches read; C(i+1, j); go back without
//             running again
//
// C is a front of (bytes, seconds), so one pass answers for every bound, the smallest included.
// On a chain that is the optimum among schedules that keep what they have kept until it is read.
// Elsewhere it is a schedule to start from: a value that crosses a cut is kept with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layers/l0/lower/launch_graph.h"

namespace l3c::l0::lower {

class IntervalSchedules {
 public:
  // Forward passes of more launches are cut where least crosses.
  static constexpr size_t kMostCuts = 72;

  // Points beyond `bound` bytes are left out, except the one of least bytes.
  IntervalSchedules(const LaunchGraph& graph, int64_t bound);
  ~IntervalSchedules();
  IntervalSchedules(const IntervalSchedules&) = delete;
  IntervalSchedules& operator=(const IntervalSchedules&) = delete;

  struct Point {
    int64_t bytes = 0;   // the most that lives at once
    double seconds = 0;  // of all launches before the turn, first runs included
  };
  using Front = std::vector<Point>;
  // By bytes ascending, seconds descending. Empty: the graph allows no such schedule.
  const Front& front() const;
  // Of a point of the front.
  Repeats Schedule(const Point& point) const;

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

}  // namespace l3c::l0::lower
