// Packing of buffers with lifetimes into one pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace l3c::l0::lower {

struct Slot {
  int64_t size = 0;       // bytes
  int64_t first_use = 0;  // positions, inclusive
  int64_t last_use = 0;
  int64_t offset = 0;  // filled in
  // Nothing else lies in its cache lines: threads may write it while others use what lies beside.
  // Small slots that need not have lines to themselves begin at a multiple of the largest power of
  // two that divides their size; others begin a line.
  bool whole_lines = true;
};

// Which slots are placed first.
enum class PackOrder : uint8_t {
  kSize,   // the largest; of equal ones, what lives longest
  kArea,   // the largest size times life
  kLife,   // what lives longest; of equal ones, the largest
  kStart,  // what begins to live first
  kRaise,  // as by size, then again and again whatever ended on top before
  kClimb,  // as by size, then single slots earlier, where that does not cost
};
std::span<const PackOrder> PackOrders();
std::string_view PackOrderName(PackOrder order);  // "by size", …
std::optional<PackOrder> ParsePackOrder(std::string_view name);

struct Packing {
  int64_t size = 0;  // bytes of the pool
  // The most bytes that live at one position, those of whole lines rounded up to lines but one,
  // since what ends on top need not be: no packing is smaller.
  int64_t lower_bound = 0;
  PackOrder order = PackOrder::kSize;
};

// Each slot at the smallest gap that is free over its lifetime, in the order that needs the fewest
// bytes, or in the one given. Never overlaps slots that live at the same position.
Packing PackSlots(std::vector<Slot>& slots, std::optional<PackOrder> order = std::nullopt);

}  // namespace l3c::l0::lower
