#include "runtime/worker_team.h"

#include <algorithm>
#include <system_error>

#include "runtime/semaphore.h"

namespace l3c::runtime {
namespace {

// Launches between two moves of the workers: streams that take turns would move them for each.
constexpr int kLaunchesBetweenMoves = 16;

}  // namespace

WorkerTeam::WorkerTeam(int threads)
    : cpus_(CpuSet::Usable()),
      // Spinning only pays when every worker has a CPU of its own.
      spins_(threads <= cpus_.count() ? kSpins : 0),
      shares_(static_cast<size_t>(std::clamp(threads, 1, kMaxThreads))) {
  try {
    for (; threads_ < static_cast<int>(shares_.size()); ++threads_) {
      workers_.emplace_back([this, worker = threads_] { Work(worker); });
    }
  } catch (const std::system_error&) {
    // A limit on threads. Results do not depend on their number.
  }
}

WorkerTeam::~WorkerTeam() {
  quit_.store(true);
  launch_.fetch_add(2);
  launch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerTeam::Run(KernelFn function, void* const* params, int64_t blocks) {
  if (threads_ == 1 || blocks <= 1) {
    if (blocks > 0) function(params, 0, blocks);
    return;
  }
  std::lock_guard lock(launching_);
  KeepWorkersOffThisCpu();
  function_ = function;
  params_ = params;
  parts_ = static_cast<int>(std::min<int64_t>(threads_, blocks));
  for (int part = 0; part < parts_; ++part) {
    Share& share = shares_[static_cast<size_t>(part)];
    share.next.store(blocks * part / parts_, std::memory_order_relaxed);
    share.end = blocks * (part + 1) / parts_;
  }
  launch_.fetch_add(1);
  launch_.notify_all();
  RunBlocks(0);
  launch_.fetch_add(1);
  for (int spins = 0;;) {
    const int32_t inside = inside_.load();
    if (inside == 0) return;
    if (++spins < spins_) {
      SpinPause();
    } else {
      inside_.wait(inside);
    }
  }
}

void WorkerTeam::KeepWorkersOffThisCpu() {
  if (threads_ > cpus_.count() || ++launches_since_move_ < kLaunchesBetweenMoves) return;
  const int cpu = CurrentCpu();
  if (cpu == launcher_cpu_) return;
  launcher_cpu_ = cpu;
  launches_since_move_ = 0;
  const CpuSet others = cpus_.Without(cpu);
  for (std::thread& worker : workers_) others.Hold(worker);
}

void WorkerTeam::RunBlocks(int worker) {
  for (int i = 0; i < parts_; ++i) {
    Share& share = shares_[static_cast<size_t>((worker + i) % parts_)];
    int64_t next = share.next.load(std::memory_order_relaxed);
    while (next < share.end) {
      const int64_t taken = (share.end - next + 1) / 2;
      if (!share.next.compare_exchange_weak(next, next + taken, std::memory_order_relaxed))
        continue;
      function_(params_, next, next + taken);
      next = share.next.load(std::memory_order_relaxed);
    }
  }
}

void WorkerTeam::Work(int worker) {
  uint32_t seen = 0;  // the last launch entered, or found closed
  for (;;) {
    uint32_t launch = launch_.load();
    for (int spins = 0; launch == seen || launch % 2 == 0;) {
      if (quit_.load()) return;
      if (++spins < spins_) {
        SpinPause();
      } else {
        launch_.wait(launch);
      }
      launch = launch_.load();
    }
    seen = launch;
    inside_.fetch_add(1);
    if (launch_.load() == launch && worker < parts_) RunBlocks(worker);
    if (inside_.fetch_sub(1) == 1) inside_.notify_one();
  }
}

}  // namespace l3c::runtime
