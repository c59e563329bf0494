// A few threads that share loops whose turns are independent.
//
// Loops may be short and follow each other closely, so a thread without work looks for more for
// some microseconds before it sleeps; and a loop does not wait for a thread that has not begun on
// it, which on a busy machine may take as long as the loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace l3c::egraph {

class WorkerPool {
 public:
  // Starts `threads` - 1 threads; the caller of Run() is the last one.
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }
  // Calls `body(thread)` on the caller's thread, which is 0, and on each of the others that is free
  // before that call returns; returns when all calls have. So `body` takes its share of the work
  // from a counter. What it throws is thrown here, the first of what several threads throw.
  void Run(const std::function<void(uint32_t thread)>& body);
  // Calls `turn(i)` once for every i below `count`, on any of the threads. A thread begins with a
  // stretch of its own, the same in every loop of that many turns, so that it meets again what its
  // cache holds, and then helps with what is left.
  template <typename Turn>
  void For(uint32_t count, Turn&& turn);

 private:
  // The state: the number of the loop in the upper half, then whether threads may still join it,
  // then how many are in it.
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static uint32_t LoopOf(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
  static uint64_t InsideOf(uint64_t state) { return state & (kOpen - 1); }

  // A part of a loop: the number of the latest loop in which a thread has taken it.
  struct alignas(64) Share {
    std::atomic<uint32_t> taken = 0;
  };
  static constexpr uint32_t kShares = 32;

  bool Take(uint32_t share, uint32_t loop) {
    uint32_t taken = shares_[share].taken.load(std::memory_order_relaxed);
    return taken != loop &&
           shares_[share].taken.compare_exchange_strong(taken, loop, std::memory_order_relaxed);
  }
  void End();
  void Work(uint32_t thread);
  // Waits until there is a loop other than `seen` to join; false when the pool ends.
  bool AwaitLoop(uint32_t seen);
  void CallBody(uint32_t thread);

  std::atomic<uint64_t> state_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<uint32_t> sleeping_ = 0;
  const std::function<void(uint32_t)>* body_ = nullptr;
  std::mutex mutex_;
  std::condition_variable start_;
  std::exception_ptr thrown_;  // under mutex_
  Share shares_[kShares];
  uint32_t loops_ = 0;
  std::vector<std::thread> workers_;
};

template <typename Turn>
void WorkerPool::For(uint32_t count, Turn&& turn) {
  const uint32_t shares = std::min(count, kShares);
  const uint32_t loop = ++loops_;
  Run([&](uint32_t thread) {
    const auto run = [&](uint32_t share) {
      if (!Take(share, loop)) return;
      const auto bound = [&](uint32_t s) {
        return static_cast<uint32_t>(uint64_t{count} * s / shares);
      };
      for (uint32_t i = bound(share); i < bound(share + 1); ++i) turn(i);
    };
    const uint32_t begin = thread * shares / threads();
    const uint32_t end = (thread + 1) * shares / threads();
    for (uint32_t s = begin; s < end; ++s) run(s);
    // Of the others, first what they take last.
    for (uint32_t s = begin; s-- > 0;) run(s);
    for (uint32_t s = shares; s-- > end;) run(s);
  });
}

}  // namespace l3c::egraph
