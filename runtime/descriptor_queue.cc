#include "runtime/descriptor_queue.h"

namespace l3c::runtime {

bool DescriptorQueue::Push(int64_t descriptor) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return cancelled_ || entries_.size() < capacity_; });
  if (cancelled_) return false;
  entries_.push_back(descriptor);
  changed_.notify_all();
  return true;
}

std::optional<int64_t> DescriptorQueue::Pop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return cancelled_ || finished_ || !entries_.empty(); });
  if (cancelled_ || entries_.empty()) return std::nullopt;
  const int64_t descriptor = entries_.front();
  entries_.pop_front();
  changed_.notify_all();
  return descriptor;
}

void DescriptorQueue::Finish() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

void DescriptorQueue::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  entries_.clear();
  changed_.notify_all();
}

}  // namespace l3c::runtime
