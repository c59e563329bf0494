// Packing of buffers with lifetimes into one pool.
#pragma once

#include <cstdint>
#include <vector>

namespace l3c::l0::lower {

struct Slot {
  int64_t size = 0;       // bytes
  int64_t first_use = 0;  // positions, inclusive
  int64_t last_use = 0;
  int64_t offset = 0;  // filled in: a multiple of `alignment`
};

struct Packing {
  int64_t size = 0;         // bytes of the pool
  int64_t lower_bound = 0;  // the most bytes that live at one position
};

// Best fit, longest-lived bytes first: slots by decreasing size · lifetime, each at the smallest
// gap that is free over its lifetime. Never overlaps slots that live at the same position.
Packing PackSlots(std::vector<Slot>& slots, int64_t alignment);

}  // namespace l3c::l0::lower
