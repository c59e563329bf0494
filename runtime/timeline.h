// What each stream did when: one span a command. Kept in memory during the run, a bounded amount.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/l0/plan.h"
#include "runtime/block_pool.h"

namespace l3c::runtime {

struct TimelineSpan {
  int64_t begin = 0, end = 0;   // nanoseconds since the run began
  l0::SequenceId sequence = 0;  // and which of its commands
  uint32_t command = 0;
  int64_t argument = 0;  // of the descriptor that started the sequence
};

class Timeline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Room for about so many spans; later ones are counted and dropped.
  static constexpr int64_t kMaxSpans = int64_t{1} << 21;
  explicit Timeline(int64_t max_spans = kMaxSpans);

  // Before any stream runs.
  void Begin(size_t streams, Time now);
  // From the stream's own thread.
  void Add(l0::StreamId stream, Time begin, Time end, l0::SequenceId sequence, size_t command,
           int64_t argument);

  // Once the streams have ended: in the order of their ends.
  std::vector<TimelineSpan> Spans(l0::StreamId stream) const;
  size_t streams() const { return tracks_.size(); }
  int64_t dropped() const;

 private:
  static constexpr size_t kSpansPerBlock = 1024;
  struct alignas(64) Track {
    std::vector<TimelineSpan*> blocks;
    size_t used = kSpansPerBlock;  // of the last block
    int64_t dropped = 0;
  };

  BlockPool pool_;
  std::vector<Track> tracks_;
  Time begin_;
};

}  // namespace l3c::runtime
