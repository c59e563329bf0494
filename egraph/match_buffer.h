// The matches of one rule as a list of fixed-size records of 32-bit values, in order.
//
// Kept in segments that never move: appending copies nothing that is there, and what is taken
// beyond the records is at most one segment of 64 KiB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "egraph/match_memory.h"

namespace l3c::egraph {

class MatchBuffer {
 public:
  // Makes room for one more record of `width` values, the same at every call.
  uint32_t* Append(uint32_t width, MatchArena& arena) {
    ++count_;
    if (static_cast<size_t>(end_ - next_) < width) [[unlikely]]
      Grow(width, arena);
    return std::exchange(next_, next_ + width);
  }
  uint64_t count() const { return count_; }
  // Of the memory that was taken, room for more included.
  uint64_t bytes() const { return bytes_; }
  size_t segment_count() const { return segments_.size(); }
  // A whole number of records.
  std::span<const uint32_t> segment(size_t i) const {
    const Segment& segment = segments_[i];
    const bool last = i + 1 == segments_.size();
    return {segment.values, last ? static_cast<size_t>(next_ - segment.values) : segment.used};
  }
  // Forgets the records, before the memory that they are in goes.
  void Clear() {
    count_ = bytes_ = 0;
    segments_.clear();
    next_ = end_ = nullptr;
  }

 private:
  static constexpr uint32_t kFirst = 32;         // values
  static constexpr uint32_t kLargest = 1 << 14;  // values
  struct Segment {
    uint32_t* values = nullptr;
    uint32_t size = 0;
    size_t used = 0;  // but for the last one
  };
  void Grow(uint32_t width, MatchArena& arena) {
    uint32_t size = kFirst;
    if (!segments_.empty()) {
      Segment& full = segments_.back();
      full.used = static_cast<size_t>(next_ - full.values);
      size = std::min(kLargest, full.size * 2);
    }
    size = std::max(size, width);
    segments_.push_back({arena.Take(size), size, 0});
    bytes_ += size * sizeof(uint32_t);
    next_ = segments_.back().values;
    end_ = next_ + size;
  }

  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  uint32_t* next_ = nullptr;  // in the last segment
  uint32_t* end_ = nullptr;
  std::vector<Segment> segments_;
};

}  // namespace l3c::egraph
