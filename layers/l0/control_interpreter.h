// Executes control units.
//
// The host gives each region its bytes (which are how it reads the cursor and writes signals) and
// plays the queues. The bytes of a region may be read and written by other threads: every access is
// a relaxed atomic of the access's width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/l0/control.h"

namespace l3c::l0 {

// 8-byte aligned, so that a word is one atomic access.
using RegionBytes = std::span<std::byte>;

// The region that the host writes.
bool IsSignals(const Region& region);
// Zeros with the region's initial words in front; empty for queues.
std::vector<int64_t> InitialWords(const Region& region);

class ControlHost {
 public:
  virtual ~ControlHost() = default;
  // Waits while the queue is full; false: the run is over, stop at once.
  virtual bool Push(RegionId queue, int64_t descriptor) = 0;
  // Waits for an entry; nothing: the run is over, stop at once.
  virtual std::optional<int64_t> Pop(RegionId queue) = 0;
};

// A unit that executes this many instructions without touching a queue does not come to an end.
inline constexpr int64_t kMaxIdleInstructions = int64_t{1} << 22;

enum class ControlEnd : uint8_t {
  kTerminated,
  kStopped,      // the host said so
  kOutOfBounds,  // a computed offset lies outside its region or is not a multiple of the width
  kIdle,         // kMaxIdleInstructions
};
struct ControlOutcome {
  ControlEnd end = ControlEnd::kTerminated;
  BlockId block = 0;  // where it ended
  uint32_t instruction = 0;
  bool stop_seen = false;  // it loaded something other than zero from `signals`
};

// Runs a unit that VerifyControl accepts. `regions[i]` holds unit.regions[i].size bytes (anything
// for queues).
ControlOutcome RunControl(const ControlUnit& unit, std::span<const RegionBytes> regions,
                          ControlHost& host);

}  // namespace l3c::l0
