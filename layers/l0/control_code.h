// A control unit as machine code: how backends and the host of a unit meet.
//
// The code reads and writes its regions in place and leaves to the host, for the queues, through
// the frame's two functions; it calls nothing else. It does what the interpreter does
// (control_interpreter.h) but for the bound on idling: instead of instructions, it counts the turns
// of loops that touch no queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/control_interpreter.h"
#include "layers/l0/control_verify.h"

namespace l3c::l0 {

inline constexpr int64_t kMaxIdleTurns = int64_t{1} << 22;

struct ControlFrame {
  void* host = nullptr;
  // 0: the run is over. Neither throws.
  int64_t (*push)(void* host, int64_t queue, int64_t descriptor) = nullptr;
  int64_t (*pop)(void* host, int64_t queue, int64_t* entry) = nullptr;
  int64_t fuel = kMaxIdleTurns;  // idle turns left; every push and pop fills it up
  int64_t stop_seen = 0;         // the or of all that was loaded from `signals`
  // How and where it ended.
  int64_t end = 0;  // a ControlEnd; the code leaves 0 when it terminates
  int64_t block = 0;
  int64_t instruction = 0;
  int64_t popped = 0;
  std::byte* regions[kMaxControlRegions] = {};
};

using ControlFn = void (*)(ControlFrame* frame);

// As RunControl does, by the unit's code.
ControlOutcome RunControlCode(ControlFn code, std::span<const RegionBytes> regions,
                              ControlHost& host);

// For each block, whether it lies on a loop without queue operations: the blocks whose entries the
// code counts.
std::vector<bool> IdleLoopBlocks(const ControlUnit& unit);

}  // namespace l3c::l0
