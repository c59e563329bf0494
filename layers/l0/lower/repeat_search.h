// Which launches to run again so that a step stays within a number of bytes at the least cost.
//
// Starts from the interval schedules (interval_schedule.h) and from dropping, value by value, what
// frees most for its cost; improves both by taking repeats away and putting them back elsewhere.
// The memory of a choice is that of its own order, launch by launch, never an estimate. Bounded in
// work; the same graph gives the same choice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "layers/l0/lower/interval_schedule.h"
#include "layers/l0/lower/launch_graph.h"

namespace l3c::l0::lower {

// By position and op: whether the op may run again there.
enum class Repeat : uint8_t { kNever, kFree, kAlways };
using RepeatOptions = std::vector<std::vector<Repeat>>;
RepeatOptions AllRepeats(const LaunchGraph& graph);

struct RepeatChoice {
  Repeats repeats;
  double seconds = 0;  // that the repeats add
  int64_t peak = 0;    // bytes
};

class RepeatSearch {
 public:
  // Launches looked at; a twentieth of a second or so.
  static constexpr uint64_t kWork = 4'000'000;

  explicit RepeatSearch(const LaunchGraph& graph, uint64_t max_work = kWork);

  // The cheapest choice found within `bound` bytes; nothing when none was.
  std::optional<RepeatChoice> Within(int64_t bound, const RepeatOptions& options);
  // The cheapest found near `start`, a choice for other options.
  std::optional<RepeatChoice> Near(const RepeatChoice& start, int64_t bound,
                                   const RepeatOptions& options);
  // The choice of fewest bytes that was found.
  RepeatChoice Smallest(const RepeatOptions& options);
  uint64_t work() const { return live_.work(); }

 private:
  class Improver;
  // Repeats that the options allow and ask for.
  Repeats Obey(Repeats repeats, const RepeatOptions& options) const;
  RepeatChoice Judge(Repeats repeats);
  std::optional<RepeatChoice> FromIntervals(int64_t bound, const RepeatOptions& options);

  const LaunchGraph& graph_;
  const uint64_t max_work_;
  LiveBytes live_;
  std::unique_ptr<IntervalSchedules> intervals_;
};

}  // namespace l3c::l0::lower
