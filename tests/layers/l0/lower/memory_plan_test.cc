#include "layers/l0/lower/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace l3c::l0::lower {
namespace {

TEST(PackSlots, ReusesWhatHasEnded) {
  std::vector<Slot> slots = {{100, 0, 1, 0}, {100, 2, 3, 0}, {100, 1, 2, 0}};
  const Packing packing = PackSlots(slots, 64);
  EXPECT_EQ(slots[0].offset, slots[1].offset);
  EXPECT_NE(slots[0].offset, slots[2].offset);
  EXPECT_EQ(packing.lower_bound, 228);  // the upper of the two ends unrounded
  EXPECT_EQ(packing.size, 228);
}

TEST(PackSlots, NeverOverlapsLiveSlots) {
  std::mt19937_64 engine(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Slot> slots;
    const size_t n = 1 + engine() % 40;
    for (size_t i = 0; i < n; ++i) {
      const int64_t first = static_cast<int64_t>(engine() % 30);
      slots.push_back({static_cast<int64_t>(1 + engine() % 1000), first,
                       first + static_cast<int64_t>(engine() % 10), 0});
    }
    const Packing packing = PackSlots(slots, 64);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(slots[i].offset % 64, 0);
      EXPECT_LE(slots[i].offset + slots[i].size, packing.size);
      for (size_t j = i + 1; j < n; ++j) {
        const bool meet =
            slots[i].first_use <= slots[j].last_use && slots[j].first_use <= slots[i].last_use;
        const bool share = slots[i].offset < slots[j].offset + slots[j].size &&
                           slots[j].offset < slots[i].offset + slots[i].size;
        EXPECT_FALSE(meet && share);
      }
    }
    EXPECT_GE(packing.size, packing.lower_bound);
  }
}

}  // namespace
}  // namespace l3c::l0::lower
