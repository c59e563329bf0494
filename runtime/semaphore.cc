#include "runtime/semaphore.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace l3c::runtime {

void SpinPause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

bool Semaphore::Wait() {
  for (int spins = 0;;) {
    int32_t count = count_.load(std::memory_order_acquire);
    if (count < 0) return false;
    if (count > 0) {
      if (count_.compare_exchange_weak(count, count - 1, std::memory_order_acquire)) return true;
    } else if (++spins < kSpins) {
      SpinPause();
    } else {
      count_.wait(0, std::memory_order_acquire);
    }
  }
}

void Semaphore::Signal() {
  count_.fetch_add(1, std::memory_order_release);
  count_.notify_one();
}

void Semaphore::Close() {
  count_.store(kClosed, std::memory_order_release);
  count_.notify_all();
}

}  // namespace l3c::runtime
