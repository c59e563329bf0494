// The matches of one rule as a list of fixed-size records of 32-bit values, in order.
//
// Kept in segments that never move: appending copies nothing that is there. What counts as taken is
// room that doubles up to 64 KiB and then grows by that, whatever the segments are, so that it
// follows from the number of records alone. Segments are as long as what is left of that room, or
// shorter where the memory of a thread has a shorter end to fill.
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
  // Of the room that was taken.
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
    room_ = room_left_ = 0;
    segments_.clear();
    next_ = end_ = nullptr;
  }

 private:
  static constexpr uint32_t kFirst = 32;         // values
  static constexpr uint32_t kLargest = 1 << 14;  // values
  static constexpr uint32_t kShort = 512;        // values that are worth a segment
  struct Segment {
    uint32_t* values = nullptr;
    size_t used = 0;  // but for the last one
  };
  void Grow(uint32_t width, MatchArena& arena) {
    if (!segments_.empty()) {
      segments_.back().used = static_cast<size_t>(next_ - segments_.back().values);
    }
    if (room_left_ == 0) {
      room_ = room_ == 0 ? kFirst : std::min(kLargest, room_ * 2);
      room_ = std::max(room_, width);
      room_left_ = room_ / width * width;
      bytes_ += room_ * sizeof(uint32_t);
    }
    const std::span<uint32_t> values =
        arena.Take(std::min(room_left_, std::max(kShort, width)), room_left_);
    segments_.push_back({values.data(), 0});
    next_ = values.data();
    end_ = next_ + values.size() / width * width;
    room_left_ -= static_cast<uint32_t>(end_ - next_);
  }

  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  uint32_t room_ = 0;         // values of the latest piece of room
  uint32_t room_left_ = 0;    // of it, in no segment yet
  uint32_t* next_ = nullptr;  // in the last segment
  uint32_t* end_ = nullptr;
  std::vector<Segment> segments_;
};

}  // namespace l3c::egraph
