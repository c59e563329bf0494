#include "layers/l0/lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace l3c::l0::lower {

namespace {

int64_t RoundUp(int64_t x, int64_t alignment) {
  return (x + alignment - 1) / alignment * alignment;
}

}  // namespace

Packing PackSlots(std::vector<Slot>& slots, int64_t alignment) {
  Packing packing;
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto area = [&](size_t i) {
    return static_cast<double>(slots[i].size) *
           static_cast<double>(slots[i].last_use - slots[i].first_use + 1);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (slots[a].size != slots[b].size) return slots[a].size > slots[b].size;
    return area(a) > area(b);
  });
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed) {
      if (slots[other].last_use < slots[i].first_use ||
          slots[i].last_use < slots[other].first_use) {
        continue;
      }
      taken.emplace_back(slots[other].offset,
                         slots[other].offset + RoundUp(slots[other].size, alignment));
    }
    std::sort(taken.begin(), taken.end());
    const int64_t size = RoundUp(slots[i].size, alignment);
    int64_t best = -1;
    int64_t best_gap = INT64_MAX;
    int64_t end = 0;
    for (const auto& [begin, stop] : taken) {
      const int64_t gap = begin - end;
      if (gap >= size && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, stop);
    }
    slots[i].offset = best >= 0 ? best : end;
    packing.size = std::max(packing.size, slots[i].offset + slots[i].size);
    placed.push_back(i);
  }
  // Live bytes change only where a slot begins or has ended.
  std::map<int64_t, int64_t> changes;
  for (const Slot& slot : slots) {
    changes[slot.first_use] += RoundUp(slot.size, alignment);
    changes[slot.last_use + 1] -= RoundUp(slot.size, alignment);
  }
  int64_t live = 0;
  for (const auto& [position, change] : changes) {
    live += change;
    packing.lower_bound = std::max(packing.lower_bound, live);
  }
  return packing;
}

}  // namespace l3c::l0::lower
