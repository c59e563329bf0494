#include "runtime/worker_team.h"

#include <algorithm>
#include <system_error>

#include "runtime/semaphore.h"

namespace l3c::runtime {
namespace {

constexpr int kPartBits = 16;
constexpr uint64_t kPartMask = (uint64_t{1} << kPartBits) - 1;

// Spinning only pays when every worker has a CPU of its own.
int SpinsFor(int threads) {
  return threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : 0;
}

}  // namespace

WorkerTeam::WorkerTeam(int threads) : spins_(SpinsFor(threads)) {
  const int wanted = std::clamp(threads, 1, kMaxThreads);
  try {
    for (; threads_ < wanted; ++threads_) {
      workers_.emplace_back([this, worker = threads_] { Work(worker); });
    }
  } catch (const std::system_error&) {
    // A limit on threads. Results do not depend on their number.
  }
}

WorkerTeam::~WorkerTeam() {
  quit_.store(true, std::memory_order_relaxed);
  launch_.fetch_add(uint64_t{1} << kPartBits, std::memory_order_release);
  launch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerTeam::Run(KernelFn function, void* const* params, int64_t blocks) {
  const int parts = static_cast<int>(std::min<int64_t>(threads_, blocks));
  if (parts <= 1) {
    if (blocks > 0) function(params, 0, blocks);
    return;
  }
  std::lock_guard lock(launching_);
  function_ = function;
  params_ = params;
  blocks_ = blocks;
  pending_.store(parts - 1, std::memory_order_relaxed);
  const uint64_t generation = (launch_.load(std::memory_order_relaxed) >> kPartBits) + 1;
  launch_.store(generation << kPartBits | static_cast<uint64_t>(parts), std::memory_order_release);
  launch_.notify_all();
  RunShare(0, parts);
  for (int spins = 0;;) {
    const int32_t pending = pending_.load(std::memory_order_acquire);
    if (pending == 0) return;
    if (++spins < spins_) {
      SpinPause();
    } else {
      pending_.wait(pending, std::memory_order_acquire);
    }
  }
}

void WorkerTeam::RunShare(int worker, int parts) const {
  const int64_t begin = blocks_ * worker / parts;
  const int64_t end = blocks_ * (worker + 1) / parts;
  if (begin < end) function_(params_, begin, end);
}

void WorkerTeam::Work(int worker) {
  uint64_t seen = 0;
  for (;;) {
    uint64_t launch = launch_.load(std::memory_order_acquire);
    for (int spins = 0; launch == seen;) {
      if (++spins < spins_) {
        SpinPause();
      } else {
        launch_.wait(seen, std::memory_order_acquire);
      }
      launch = launch_.load(std::memory_order_acquire);
    }
    seen = launch;
    if (quit_.load(std::memory_order_relaxed)) return;
    const int parts = static_cast<int>(launch & kPartMask);
    if (worker >= parts) continue;
    RunShare(worker, parts);
    if (pending_.fetch_sub(1, std::memory_order_release) == 1) pending_.notify_one();
  }
}

}  // namespace l3c::runtime
