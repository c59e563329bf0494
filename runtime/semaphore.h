// A counting semaphore that can be closed, so that a failing run wakes everyone who waits.
#pragma once

#include <atomic>
#include <cstdint>

namespace l3c::runtime {

// How often a waiter looks again before it sleeps in the kernel: about 50 µs, which is longer than
// the usual gap between two kernels and shorter than a wake-up is worth saving.
inline constexpr int kSpins = 1000;
void SpinPause();

class Semaphore {
 public:
  explicit Semaphore(int64_t initial) : count_(static_cast<int32_t>(initial)) {}

  // False when the semaphore is closed.
  bool Wait();
  void Signal();
  void Close();

 private:
  static constexpr int32_t kClosed = INT32_MIN / 2;  // far below what signals can bring back
  std::atomic<int32_t> count_;
};

}  // namespace l3c::runtime
