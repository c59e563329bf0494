#include "runtime/descriptor_queue.h"

#include <algorithm>
#include <bit>

namespace l3c::runtime {

DescriptorQueue::DescriptorQueue(int64_t capacity)
    : capacity_(static_cast<uint64_t>(std::max<int64_t>(1, capacity))),
      mask_(std::bit_ceil(capacity_) - 1),
      slots_(new int64_t[mask_ + 1]) {}

bool DescriptorQueue::Push(int64_t descriptor) {
  const uint64_t at = pushed_.load(std::memory_order_relaxed);
  for (;;) {
    // Read before the condition: a change that follows the look ends the wait below.
    const uint32_t seen = changes_.load();
    if (state_.load() == kCancelled) return false;
    if (at - popped_.load() < capacity_) break;
    changes_.wait(seen);
  }
  slots_[at & mask_] = descriptor;
  pushed_.store(at + 1);
  Changed();
  return true;
}

std::optional<int64_t> DescriptorQueue::Pop() {
  const uint64_t at = popped_.load(std::memory_order_relaxed);
  for (;;) {
    const uint32_t seen = changes_.load();
    // The state first: what was pushed before Finish is then seen by the look at `pushed_`.
    const uint32_t state = state_.load();
    if (state == kCancelled) return std::nullopt;
    if (pushed_.load() != at) break;
    if (state == kFinished) return std::nullopt;
    changes_.wait(seen);
  }
  const int64_t descriptor = slots_[at & mask_];
  popped_.store(at + 1);
  Changed();
  return descriptor;
}

void DescriptorQueue::Finish() {
  uint32_t open = kOpen;
  state_.compare_exchange_strong(open, kFinished);
  Changed();
}

void DescriptorQueue::Cancel() {
  state_.store(kCancelled);
  Changed();
}

void DescriptorQueue::Changed() {
  changes_.fetch_add(1);
  changes_.notify_all();
}

}  // namespace l3c::runtime
