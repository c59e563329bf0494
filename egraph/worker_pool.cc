#include "egraph/worker_pool.h"

#include <utility>

namespace l3c::egraph {
namespace {

// Looks at the state before a thread sleeps: some hundreds of microseconds, a few times what it
// takes to be woken.
constexpr uint32_t kLooks = 16384;

// What is waited for may be another thread of this processor.
constexpr uint32_t kLooksPerYield = 64;

inline void Wait(uint32_t looks) {
  if (looks % kLooksPerYield == kLooksPerYield - 1) std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

WorkerPool::WorkerPool(uint32_t threads) {
  try {
    for (uint32_t t = 1; t < threads; ++t) workers_.emplace_back([this, t] { Work(t); });
  } catch (...) {
    End();
    throw;
  }
}

WorkerPool::~WorkerPool() { End(); }

void WorkerPool::End() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::CallBody(uint32_t thread) {
  try {
    (*body_)(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (thrown_ == nullptr) thrown_ = std::current_exception();
  }
}

void WorkerPool::Run(const std::function<void(uint32_t)>& body) {
  body_ = &body;
  const uint64_t loop = uint64_t{LoopOf(state_.load(std::memory_order_relaxed))} + 1;
  state_.store(loop << 32 | kOpen);
  // A thread that is about to sleep has said so before it looked at the state for the last time.
  if (sleeping_.load() != 0) {
    {
      const std::lock_guard lock(mutex_);
    }
    start_.notify_all();
  }
  CallBody(0);
  state_.fetch_and(~kOpen);
  for (uint32_t looks = 0; InsideOf(state_.load(std::memory_order_acquire)) != 0; ++looks) {
    Wait(looks);
  }
  body_ = nullptr;
  const std::lock_guard lock(mutex_);
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

bool WorkerPool::AwaitLoop(uint32_t seen) {
  const auto ready = [&] {
    const uint64_t state = state_.load();
    return ending_.load() || ((state & kOpen) != 0 && LoopOf(state) != seen);
  };
  for (uint32_t looks = 0; !ready(); ++looks) {
    if (looks < kLooks) {
      Wait(looks);
      continue;
    }
    std::unique_lock lock(mutex_);
    ++sleeping_;
    start_.wait(lock, ready);
    --sleeping_;
  }
  return !ending_.load();
}

void WorkerPool::Work(uint32_t thread) {
  uint32_t seen = 0;
  while (AwaitLoop(seen)) {
    uint64_t state = state_.load(std::memory_order_relaxed);
    if ((state & kOpen) == 0 || LoopOf(state) == seen) continue;
    if (!state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire)) continue;
    seen = LoopOf(state);
    CallBody(thread);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace l3c::egraph
