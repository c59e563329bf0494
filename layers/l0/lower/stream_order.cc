#include "layers/l0/lower/stream_order.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace l3c::l0::lower {
namespace {

constexpr int64_t kNoCommand = -1;

// By stream: the last of its commands.
using Clock = std::vector<int64_t>;

void Join(Clock& clock, const Clock& other) {
  for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

// Who touched the bytes of a pool last.
class ByteHistory {
 public:
  explicit ByteHistory(size_t streams) {
    cells_[0] = {Clock(streams, kNoCommand), Clock(streams, kNoCommand)};
  }

  // What an access has to come after, into `after`, and that it is there from now on.
  void Access(int64_t begin, int64_t end, bool writes, StreamId stream, int64_t command,
              Clock& after) {
    const auto first = CellAt(begin), last = CellAt(end);
    for (auto cell = first; cell != last; ++cell) {
      Join(after, cell->second.written);
      if (writes) Join(after, cell->second.read);
      (writes ? cell->second.written : cell->second.read)[stream] = command;
    }
  }

 private:
  struct Cell {
    Clock read, written;
  };

  // The cell that begins there.
  std::map<int64_t, Cell>::iterator CellAt(int64_t byte) {
    const auto next = cells_.upper_bound(byte);
    const auto around = std::prev(next);
    return around->first == byte ? around : cells_.emplace_hint(next, byte, around->second);
  }

  std::map<int64_t, Cell> cells_;  // by their first byte
};

}  // namespace

std::vector<Handover> OrderStreams(const Plan& plan, const std::vector<StreamedCommand>& commands) {
  const size_t streams = plan.streams.size();
  std::vector<ByteHistory> pools(plan.pools.size(), ByteHistory(streams));
  std::vector<Clock> known(streams, Clock(streams, kNoCommand));  // by stream: what it comes after
  std::vector<Clock> at(commands.size());  // the same by command, with itself
  std::vector<Handover> handovers;
  Clock latest(streams, kNoCommand);
  for (size_t i = 0; i < commands.size(); ++i) {
    const StreamedCommand& command = commands[i];
    Clock after(streams, kNoCommand);
    if (i > 0 && latest[command.stream] == kNoCommand) after[commands.front().stream] = 0;
    if (i + 1 == commands.size()) after = latest;
    const auto touch = [&](const std::vector<BufferId>& buffers, bool writes) {
      for (BufferId id : buffers) {
        const Buffer& buffer = plan.buffers[id];
        pools[buffer.pool].Access(buffer.offset, buffer.offset + buffer.size, writes,
                                  command.stream, static_cast<int64_t>(i), after);
      }
    };
    touch(command.reads, false);
    touch(command.writes, true);
    Clock& clock = known[command.stream];
    // The latest first: what it comes after itself need not be waited for.
    std::vector<int64_t> wanted;
    for (size_t s = 0; s < streams; ++s) {
      if (s != command.stream && after[s] > clock[s]) wanted.push_back(after[s]);
    }
    std::sort(wanted.rbegin(), wanted.rend());
    for (int64_t other : wanted) {
      if (other <= clock[commands[static_cast<size_t>(other)].stream]) continue;
      handovers.push_back({static_cast<size_t>(other), i});
      Join(clock, at[static_cast<size_t>(other)]);
    }
    clock[command.stream] = latest[command.stream] = static_cast<int64_t>(i);
    at[i] = clock;
  }
  return handovers;
}

}  // namespace l3c::l0::lower
