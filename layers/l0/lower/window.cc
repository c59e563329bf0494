#include "layers/l0/lower/window.h"

#include <algorithm>

#include "layers/l0/lower/memory_plan.h"
#include "layers/l0/plan.h"

namespace l3c::l0::lower {

bool StateWindow::written() const {
  return std::any_of(slots.begin(), slots.end(), [](const WindowSlot& s) { return s.written; });
}

std::optional<size_t> StateWindow::SlotOf(int32_t state, int64_t turn) const {
  for (size_t i = 0; i < slots.size(); ++i) {
    const WindowSlot& slot = slots[i];
    if (slot.state == state && slot.first <= turn && turn <= slot.last) return i;
  }
  return std::nullopt;
}

int32_t StateOf(const Binding& binding, const Step& step, const ValueTable& table) {
  if (binding.state >= 0) return binding.state;
  if (binding.storage.kernel >= 0 || binding.storage.value < 0) return -1;
  const int32_t input = table.values[binding.storage.value].input;
  if (input < 0 || step.inputs[input].kind != StepInput::Kind::kState) return -1;
  return static_cast<int32_t>(step.inputs[input].state);
}

StateWindow MakeWindow(const StepPlan& plan, const Step& step, const ValueTable& table,
                       const FarStates& far) {
  StateWindow window;
  window.turn_of.assign(plan.launches.size(), -1);
  // What each launch touches, and how; of a field that it binds twice, both.
  struct Touch {
    bool read = false, written = false;
  };
  std::vector<std::map<int32_t, Touch>> touched(plan.launches.size());
  int64_t largest = 0;
  const auto bytes_of = [&](const std::map<int32_t, Touch>& states) {
    int64_t bytes = 0;
    for (const auto& [state, touch] : states) bytes += far[state]->bytes;
    return bytes;
  };
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    const Launch& launch = plan.launches[l];
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      const int32_t state = StateOf(launch.bindings[p], step, table);
      if (state < 0 || !far[state]) continue;
      Touch& touch = touched[l][state];
      touch.read = touch.read || launch.kernel.params[p].access != Access::kOut;
      touch.written = touch.written || launch.kernel.params[p].access != Access::kIn;
    }
    largest = std::max(largest, bytes_of(touched[l]));
  }
  std::map<int32_t, Touch> together;  // of the present turn
  std::map<int32_t, size_t> latest;   // the slot of a field that was used last
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    if (touched[l].empty()) continue;
    std::map<int32_t, Touch> more = together;
    more.insert(touched[l].begin(), touched[l].end());
    if (window.turns == 0 || bytes_of(more) > largest) {
      ++window.turns;
      more = touched[l];
    }
    together = std::move(more);
    const int64_t turn = window.turn_of[l] = window.turns - 1;
    for (const auto& [state, touch] : touched[l]) {
      const auto it = latest.find(state);
      // One turn apart, what was written would not be back before it is fetched.
      const bool fresh = it == latest.end() || window.slots[it->second].last + 1 < turn;
      if (fresh) {
        latest[state] = window.slots.size();
        window.slots.push_back({state, turn, turn, touch.read, false, 0});
      }
      WindowSlot& slot = window.slots[latest[state]];
      slot.last = turn;
      slot.written = slot.written || touch.written;
    }
  }
  std::map<uint32_t, std::vector<size_t>> by_memory;
  for (size_t i = 0; i < window.slots.size(); ++i) {
    by_memory[far[window.slots[i].state]->memory].push_back(i);
  }
  for (const auto& [memory, slots] : by_memory) {
    std::vector<Slot> lives;  // from the turn before the first, counted from one
    for (size_t i : slots) {
      const WindowSlot& slot = window.slots[i];
      lives.push_back({far[slot.state]->bytes, slot.first, slot.last + 1, 0});
    }
    window.bytes[memory] = PackSlots(lives).size;
    for (size_t i = 0; i < slots.size(); ++i) window.slots[slots[i]].offset = lives[i].offset;
  }
  return window;
}

}  // namespace l3c::l0::lower
