// A step's launches as the choice between saving and computing again sees them, and what memory a
// choice takes.
//
// The launches stand in the order of the plan. Those before `turn` are the forward pass, about;
// what they make may be made again before any later launch. A value that is made again is another
// slot from then on: whatever reads it reads the latest. So every set of repeats gives a program
// that computes the same bits, and only the memory that it takes tells whether it may be.
#pragma once

#include <cstdint>
#include <vector>

namespace l3c::l0::lower {

struct LaunchGraph {
  struct Op {
    double seconds = 0;
    std::vector<int32_t> reads;   // values, ascending
    std::vector<int32_t> writes;  // values, ascending
    // The last position that it may run again before; −1: never. What it reads besides values (the
    // old state, the batch) is overwritten there, or it overwrites something itself.
    int32_t until = -1;
  };
  struct Value {
    int64_t bytes = 0;
    int32_t maker = -1;  // op
  };
  std::vector<Op> ops;  // the last one reads what is read at the end, and makes nothing
  std::vector<Value> values;
  int32_t turn = 0;

  int32_t end() const { return static_cast<int32_t>(ops.size()); }
  bool MayRepeat(int32_t op, int32_t before) const {
    return op < turn && before > op && before <= ops[op].until;
  }
};

// By position: the ops that run again just before it, ascending.
using Repeats = std::vector<std::vector<int32_t>>;

double SecondsOf(const LaunchGraph& graph, const Repeats& repeats);

// Where the forward pass ends: what crosses that position lives longest, in sum of squares.
int32_t FindTurn(const LaunchGraph& graph);

// The order of all launches, first ones and repeats.
std::vector<int32_t> OrderOf(const LaunchGraph& graph, const Repeats& repeats);

// What lives while launches run. Keeps its buffers from call to call.
class LiveBytes {
 public:
  explicit LiveBytes(const LaunchGraph& graph);

  // The most bytes that live at once.
  int64_t Peak(const std::vector<int32_t>& order);
  int64_t Peak(const Repeats& repeats) { return Peak(OrderOf(graph_, repeats)); }
  // The same by launch: everything that lives while it runs, what it reads and writes included.
  const std::vector<int64_t>& Profile(const std::vector<int32_t>& order);
  uint64_t work() const { return work_; }  // launches looked at so far

 private:
  const LaunchGraph& graph_;
  std::vector<uint8_t> live_;
  std::vector<int64_t> profile_;
  uint64_t work_ = 0;
};

}  // namespace l3c::l0::lower
