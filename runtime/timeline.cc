#include "runtime/timeline.h"

#include <new>

namespace l3c::runtime {

Timeline::Timeline(int64_t max_spans)
    : pool_(kSpansPerBlock * sizeof(TimelineSpan),
            static_cast<uint32_t>((max_spans + static_cast<int64_t>(kSpansPerBlock) - 1) /
                                  static_cast<int64_t>(kSpansPerBlock))) {}

void Timeline::Begin(size_t streams, Time now) {
  for (const Track& track : tracks_) {
    for (TimelineSpan* block : track.blocks) pool_.Give(reinterpret_cast<std::byte*>(block));
  }
  tracks_ = std::vector<Track>(streams);
  begin_ = now;
}

void Timeline::Add(l0::StreamId stream, Time begin, Time end, l0::SequenceId sequence,
                   size_t command, int64_t argument) {
  Track& track = tracks_[stream];
  if (track.used == kSpansPerBlock) {
    std::byte* block = pool_.Take();
    if (block == nullptr) {
      ++track.dropped;
      return;
    }
    track.blocks.push_back(new (block) TimelineSpan[kSpansPerBlock]);
    track.used = 0;
  }
  const auto since = [&](Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - begin_).count();
  };
  track.blocks.back()[track.used++] = {since(begin), since(end), sequence,
                                       static_cast<uint32_t>(command), argument};
}

std::vector<TimelineSpan> Timeline::Spans(l0::StreamId stream) const {
  const Track& track = tracks_[stream];
  std::vector<TimelineSpan> spans;
  for (size_t b = 0; b < track.blocks.size(); ++b) {
    const size_t count = b + 1 < track.blocks.size() ? kSpansPerBlock : track.used;
    spans.insert(spans.end(), track.blocks[b], track.blocks[b] + count);
  }
  return spans;
}

int64_t Timeline::dropped() const {
  int64_t dropped = 0;
  for (const Track& track : tracks_) dropped += track.dropped;
  return dropped;
}

}  // namespace l3c::runtime
