#include "layers/l0/lower/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace l3c::l0::lower {
namespace {

TEST(PackSlots, ReusesWhatHasEnded) {
  std::vector<Slot> slots = {{100, 0, 1, 0}, {100, 2, 3, 0}, {100, 1, 2, 0}};
  const Packing packing = PackSlots(slots);
  EXPECT_EQ(slots[0].offset, slots[1].offset);
  EXPECT_NE(slots[0].offset, slots[2].offset);
  EXPECT_EQ(packing.lower_bound, 228);  // the upper of the two ends unrounded
  EXPECT_EQ(packing.size, 228);
}

// By size the larger one is below, rounded up to 128.
TEST(PackSlots, WhatIsPaddedMostEndsOnTop) {
  std::vector<Slot> slots = {{100, 0, 2, 0}, {64, 0, 0, 0}};
  EXPECT_EQ(PackSlots(slots).size, 164);
  EXPECT_EQ(slots[0].offset, 64);
}

TEST(PackSlots, WhatIsSmallSharesLines) {
  // 120 bytes leave 8 of their second line to two scalars.
  std::vector<Slot> slots = {
      {120, 0, 2, 0, false}, {4, 0, 1, 0, false}, {4, 0, 2, 0, false}, {48, 1, 2, 0, false}};
  const Packing packing = PackSlots(slots);
  EXPECT_EQ(packing.lower_bound, 176);
  EXPECT_EQ(packing.size, 176);
  // Nothing lies beside what has its lines to itself.
  slots = {{120, 0, 2, 0, true}, {4, 0, 1, 0, false}, {4, 0, 2, 0, false}};
  EXPECT_EQ(PackSlots(slots).size, 128 + 8);
  EXPECT_EQ(slots[0].offset, 0);
}

TEST(PackSlots, NeverOverlapsLiveSlots) {
  std::mt19937_64 engine(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Slot> slots;
    const size_t n = 1 + engine() % 40;
    for (size_t i = 0; i < n; ++i) {
      const int64_t first = static_cast<int64_t>(engine() % 30);
      const int64_t most = engine() % 2 == 0 ? 1000 : 60;
      slots.push_back({static_cast<int64_t>(1 + engine() % most), first,
                       first + static_cast<int64_t>(engine() % 10), 0, engine() % 3 == 0});
    }
    const Packing packing = PackSlots(slots);
    for (size_t i = 0; i < n; ++i) {
      const auto line = [](int64_t offset) { return offset / 64; };
      const int64_t natural = std::min<int64_t>(64, slots[i].size & -slots[i].size);
      EXPECT_EQ(slots[i].offset % (slots[i].whole_lines ? 64 : natural), 0);
      EXPECT_LE(slots[i].offset + slots[i].size, packing.size);
      for (size_t j = i + 1; j < n; ++j) {
        const bool meet =
            slots[i].first_use <= slots[j].last_use && slots[j].first_use <= slots[i].last_use;
        const bool share = slots[i].offset < slots[j].offset + slots[j].size &&
                           slots[j].offset < slots[i].offset + slots[i].size;
        EXPECT_FALSE(meet && share);
        const bool same_line = line(slots[i].offset) <= line(slots[j].offset + slots[j].size - 1) &&
                               line(slots[j].offset) <= line(slots[i].offset + slots[i].size - 1);
        EXPECT_FALSE(meet && same_line && (slots[i].whole_lines || slots[j].whole_lines));
      }
    }
    EXPECT_GE(packing.size, packing.lower_bound);
  }
}

}  // namespace
}  // namespace l3c::l0::lower
