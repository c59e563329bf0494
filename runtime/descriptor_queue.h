// A ring of descriptors between the control unit and a stream: one thread pushes, one pops, and
// neither takes a lock. Finish and Cancel may come from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace l3c::runtime {

class DescriptorQueue {
 public:
  // Rounded up in memory to a power of two; Push counts by `capacity` itself.
  explicit DescriptorQueue(int64_t capacity);

  // Waits while the queue is full. False when it was cancelled.
  bool Push(int64_t descriptor);
  // Waits while the queue is empty. Nothing once it was cancelled, or finished and drained.
  std::optional<int64_t> Pop();

  void Finish();  // no push will follow; what is in the queue is still popped
  void Cancel();  // drops what is in the queue and wakes everyone

 private:
  enum : uint32_t { kOpen, kFinished, kCancelled };
  void Changed();

  const uint64_t capacity_;
  const uint64_t mask_;
  std::unique_ptr<int64_t[]> slots_;
  alignas(64) std::atomic<uint64_t> pushed_{0};
  alignas(64) std::atomic<uint64_t> popped_{0};
  alignas(64) std::atomic<uint32_t> changes_{0};  // what a waiting end sleeps on
  std::atomic<uint32_t> state_{kOpen};
};

}  // namespace l3c::runtime
