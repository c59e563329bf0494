// The matches of one rule as a list of fixed-size records of 32-bit values, in order.
//
// Kept in segments that never move: appending copies nothing that is there, and what is allocated
// beyond the records is at most one segment of 64 KiB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace l3c::egraph {

class MatchBuffer {
 public:
  // Makes room for one more record of `width` values, the same at every call.
  uint32_t* Append(uint32_t width) {
    ++count_;
    if (segments_.empty() || segments_.back().size - segments_.back().used < width) Grow(width);
    Segment& segment = segments_.back();
    uint32_t* record = segment.values.get() + segment.used;
    segment.used += width;
    return record;
  }
  uint64_t count() const { return count_; }
  size_t segment_count() const { return segments_.size(); }
  // A whole number of records.
  std::span<const uint32_t> segment(size_t i) const {
    return {segments_[i].values.get(), segments_[i].used};
  }
  // Forgets the records; memory for a few is kept.
  void Clear() {
    count_ = 0;
    if (segments_.size() > 1) segments_.resize(1);
    if (!segments_.empty()) segments_[0].used = 0;
  }

 private:
  static constexpr uint32_t kFirst = 64;         // values
  static constexpr uint32_t kLargest = 1 << 14;  // values
  struct Segment {
    std::unique_ptr<uint32_t[]> values;
    uint32_t size = 0;
    uint32_t used = 0;
  };
  void Grow(uint32_t width) {
    const uint32_t size = segments_.empty() ? kFirst : std::min(kLargest, segments_.back().size * 4);
    const uint32_t fits = std::max(size, width);
    segments_.push_back({std::make_unique_for_overwrite<uint32_t[]>(fits), fits, 0});
  }

  uint64_t count_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace l3c::egraph
