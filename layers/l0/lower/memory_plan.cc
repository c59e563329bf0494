#include "layers/l0/lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "layers/l0/plan.h"

namespace l3c::l0::lower {

namespace {

constexpr PackOrder kOrders[] = {PackOrder::kSize,  PackOrder::kArea,  PackOrder::kLife,
                                 PackOrder::kStart, PackOrder::kRaise, PackOrder::kClimb};
// Packings that kRaise and kClimb try, less where there are many slots.
constexpr size_t kMostRaises = 256;
constexpr size_t kMostMoves = 2048;
constexpr size_t kPackingWork = 4'000'000;
// From here on what fills the end of the last line is less than what reading across lines costs.
constexpr int64_t kLargeSlot = 16 * kAlignment;

int64_t RoundUp(int64_t x, int64_t alignment) {
  return (x + alignment - 1) / alignment * alignment;
}

// Bytes that nothing else may lie in.
int64_t Taken(const Slot& slot) {
  return slot.whole_lines ? RoundUp(slot.size, kAlignment) : slot.size;
}

// The first offset from `begin` on that a slot may have.
int64_t OffsetFrom(int64_t begin, const Slot& slot) {
  const bool begins_a_line = slot.whole_lines || slot.size >= kLargeSlot || slot.size == 0;
  return RoundUp(begin, begins_a_line ? kAlignment : std::min(kAlignment, slot.size & -slot.size));
}

// Fills in the offsets; bytes of the pool.
int64_t Place(const std::vector<size_t>& order, std::vector<Slot>& slots) {
  struct Placed {
    int64_t begin, end;  // offsets
    int64_t first_use, last_use;
  };
  int64_t pool = 0;
  std::vector<Placed> placed;  // by offset
  placed.reserve(order.size());
  for (size_t i : order) {
    Slot& slot = slots[i];
    const int64_t size = Taken(slot);
    int64_t best = -1;
    int64_t best_gap = INT64_MAX;
    int64_t end = 0;
    for (const Placed& other : placed) {
      if (other.last_use < slot.first_use || slot.last_use < other.first_use) continue;
      const int64_t offset = OffsetFrom(end, slot);
      const int64_t gap = other.begin - end;
      if (offset + size <= other.begin && gap < best_gap) {
        best = offset;
        best_gap = gap;
      }
      end = std::max(end, other.end);
    }
    slot.offset = best >= 0 ? best : OffsetFrom(end, slot);
    pool = std::max(pool, slot.offset + slot.size);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), slot.offset,
                         [](int64_t offset, const Placed& other) { return offset < other.begin; });
    placed.insert(at, {slot.offset, slot.offset + size, slot.first_use, slot.last_use});
  }
  return pool;
}

std::vector<size_t> OrderOf(PackOrder order, const std::vector<Slot>& slots) {
  const auto life = [&](size_t i) { return slots[i].last_use - slots[i].first_use + 1; };
  const auto area = [&](size_t i) {
    return static_cast<double>(slots[i].size) * static_cast<double>(life(i));
  };
  std::vector<size_t> sorted(slots.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
    switch (order) {
      case PackOrder::kArea:
        return area(a) > area(b);
      case PackOrder::kLife:
        return life(a) != life(b) ? life(a) > life(b) : slots[a].size > slots[b].size;
      case PackOrder::kStart:
        return slots[a].first_use != slots[b].first_use ? slots[a].first_use < slots[b].first_use
                                                        : slots[a].size > slots[b].size;
      case PackOrder::kSize:
      case PackOrder::kRaise:
      case PackOrder::kClimb:
        break;
    }
    return slots[a].size != slots[b].size ? slots[a].size > slots[b].size : area(a) > area(b);
  });
  return sorted;
}

size_t Tries(size_t most, const std::vector<Slot>& slots) {
  return std::min(most, kPackingWork / std::max<size_t>(1, slots.size() * slots.size()));
}

// Again and again, what ended on top is placed first.
int64_t Raise(std::vector<size_t> order, std::vector<Slot>& slots, int64_t lower_bound) {
  int64_t size = Place(order, slots);
  std::vector<Slot> best = slots;
  const size_t tries = Tries(kMostRaises, slots);
  for (size_t n = 0; n < tries && size > lower_bound; ++n) {
    const auto top = std::max_element(order.begin(), order.end(), [&](size_t a, size_t b) {
      return slots[a].offset + slots[a].size < slots[b].offset + slots[b].size;
    });
    if (top == order.begin()) break;
    std::rotate(order.begin(), top, top + 1);
    const int64_t now = Place(order, slots);
    if (now < size) size = now, best = slots;
  }
  slots = std::move(best);
  return size;
}

// One slot is placed earlier, drawn by a generator of fixed seed; the move stays unless it costs.
int64_t Climb(std::vector<size_t> order, std::vector<Slot>& slots, int64_t lower_bound) {
  int64_t size = Place(order, slots);
  std::vector<Slot> best = slots;
  std::minstd_rand random;
  const size_t tries = order.size() < 2 ? 0 : Tries(kMostMoves, slots);
  for (size_t n = 0; n < tries && size > lower_bound; ++n) {
    const size_t from = 1 + random() % (order.size() - 1);
    const size_t to = random() % from;
    const auto move = [&](size_t first, size_t middle, size_t last) {
      std::rotate(order.begin() + first, order.begin() + middle, order.begin() + last);
    };
    move(to, from, from + 1);
    const int64_t now = Place(order, slots);
    if (now > size) {
      move(to, to + 1, from + 1);
      continue;
    }
    if (now < size) best = slots;
    size = now;
  }
  slots = std::move(best);
  return size;
}

int64_t Pack(PackOrder order, std::vector<Slot>& slots, int64_t lower_bound) {
  std::vector<size_t> sorted = OrderOf(order, slots);
  if (order == PackOrder::kRaise) return Raise(std::move(sorted), slots, lower_bound);
  if (order == PackOrder::kClimb) return Climb(std::move(sorted), slots, lower_bound);
  return Place(sorted, slots);
}

struct Live {
  int64_t rounded = 0;  // those of whole lines up to lines
  int64_t least = 0;    // the one that ends on top need not be rounded up: at best what loses most
};

// Live bytes change only where a slot begins or has ended.
Live MostLive(const std::vector<Slot>& slots) {
  std::map<int64_t, std::vector<std::pair<const Slot*, bool>>> changes;  // slot, begins
  for (const Slot& slot : slots) {
    changes[slot.first_use].emplace_back(&slot, true);
    changes[slot.last_use + 1].emplace_back(&slot, false);
  }
  Live most;
  int64_t live = 0;
  std::multiset<int64_t> padding;  // of what lives
  for (const auto& [position, here] : changes) {
    for (const auto& [slot, begins] : here) {
      const int64_t rounded = Taken(*slot);
      live += begins ? rounded : -rounded;
      if (begins) {
        padding.insert(rounded - slot->size);
      } else {
        padding.erase(padding.find(rounded - slot->size));
      }
    }
    most.rounded = std::max(most.rounded, live);
    most.least = std::max(most.least, padding.empty() ? 0 : live - *padding.rbegin());
  }
  return most;
}

}  // namespace

std::span<const PackOrder> PackOrders() { return kOrders; }

std::string_view PackOrderName(PackOrder order) {
  switch (order) {
    case PackOrder::kSize:
      return "by size";
    case PackOrder::kArea:
      return "by size and life";
    case PackOrder::kLife:
      return "by life";
    case PackOrder::kStart:
      return "by start";
    case PackOrder::kRaise:
      return "by size, raised";
    case PackOrder::kClimb:
      return "by size, moved";
  }
  return "";
}

std::optional<PackOrder> ParsePackOrder(std::string_view name) {
  for (PackOrder order : kOrders) {
    if (PackOrderName(order) == name) return order;
  }
  return std::nullopt;
}

Packing PackSlots(std::vector<Slot>& slots, std::optional<PackOrder> order) {
  Packing packing;
  const Live live = MostLive(slots);
  packing.lower_bound = live.least;
  // What another order could still save is padding, which is looked for where it is 3 % and more.
  const int64_t enough = std::min(live.rounded, live.least + live.least * 3 / 100);
  std::vector<Slot> best;
  for (PackOrder tried : kOrders) {
    if (order && *order != tried) continue;
    std::vector<Slot> placed = slots;
    const int64_t size = Pack(tried, placed, enough);
    if (!best.empty() && size >= packing.size) continue;
    packing.size = size;
    packing.order = tried;
    best = std::move(placed);
    if (size <= enough) break;
  }
  slots = std::move(best);
  return packing;
}

}  // namespace l3c::l0::lower
