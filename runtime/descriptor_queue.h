// A bounded queue of descriptors between the control unit and a stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace l3c::runtime {

class DescriptorQueue {
 public:
  explicit DescriptorQueue(int64_t capacity) : capacity_(static_cast<size_t>(capacity)) {}

  // Waits while the queue is full. False when it was cancelled.
  bool Push(int64_t descriptor);
  // Waits while the queue is empty. Nothing once it was cancelled, or finished and drained.
  std::optional<int64_t> Pop();

  void Finish();  // no push will follow; what is in the queue is still popped
  void Cancel();  // drops what is in the queue and wakes everyone

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int64_t> entries_;
  bool finished_ = false;
  bool cancelled_ = false;
};

}  // namespace l3c::runtime
