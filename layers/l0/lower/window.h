// State that lies in another memory than the kernels that use it work in. What a launch touches of
// it is copied into slots nearby, and that of the next launch while this one computes, so that no
// more than two launches' state is there at once. What was written is copied back. This is how a
// model trains that is larger than the memory it is computed in.
//
//   turn t   launches in a row whose state together is no more than that of the largest launch: to
//            wait for each of many small ones would take longer than they do
//   slot     a field over turns in a row; filled during the turn before its first, copied back
//            during the turn after its last
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "layers/l0/lower/step_plan.h"
#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

// By index into AllState: nothing where the field lies where it is used.
struct FarState {
  int64_t bytes = 0;
  uint32_t memory = 0;  // that it is brought into
};
using FarStates = std::vector<std::optional<FarState>>;

struct WindowSlot {
  int32_t state = 0;
  int64_t first = 0, last = 0;  // turns
  bool filled = false;          // its first launch reads it
  bool written = false;
  int64_t offset = 0;  // in the window of its memory
};

struct StateWindow {
  std::vector<int64_t> turn_of;  // by launch; −1: it touches no such state
  int64_t turns = 0;
  std::vector<WindowSlot> slots;      // by first turn
  std::map<uint32_t, int64_t> bytes;  // of slots, by memory

  bool written() const;
  std::optional<size_t> SlotOf(int32_t state, int64_t turn) const;  // index into `slots`
};

// The field of state that a launch binds, or −1: its own, or one that it only reads.
int32_t StateOf(const Binding& binding, const Step& step, const ValueTable& table);

StateWindow MakeWindow(const StepPlan& plan, const Step& step, const ValueTable& table,
                       const FarStates& far);

}  // namespace l3c::l0::lower
