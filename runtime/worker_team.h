// Threads that share the grid blocks of a kernel.
//
// A launch cuts [0, blocks) into one contiguous share a worker, the same shares every time, so that
// a worker meets the rows it had in the kernel before in its cache. It takes its share in pieces,
// half of what is left at a time, and then helps with the shares of others: a worker that the
// system has put aside, or that wakes up late, holds nobody up. Blocks write disjoint bytes and no
// block depends on another, so results depend neither on the number of workers nor on who ran what.
//
// Workers spin for a moment between launches and then sleep; the launching thread is worker 0.
// Where every thread can have a CPU of its own, the others are kept off the launcher's: a system
// that wakes a worker there leaves it waiting behind the launcher for several launches, while a CPU
// idles.
//
// Life of a launch: the launcher fills in the shares and opens it; a worker enters by adding itself
// to `inside_` and looking whether the launch is still open; the launcher closes it when no block
// is left to take, and waits until `inside_` is zero. So the fields of a launch change only when no
// worker can be reading them. Opening, closing, entering and the look after entering are
// sequentially consistent: either the worker sees the closing or the launcher sees the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/cpu_set.h"
#include "runtime/kernel_table.h"

namespace l3c::runtime {

class WorkerTeam {
 public:
  static constexpr int kMaxThreads = 256;

  // 1 … kMaxThreads; fewer than asked for where the system starts no more.
  explicit WorkerTeam(int threads);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;

  // Returns when all blocks are done. Streams that launch at the same time take turns.
  void Run(KernelFn function, void* const* params, int64_t blocks);

 private:
  // A share's blocks [next, end); padded, as each worker writes its own.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void Work(int worker);
  // Runs blocks until none is left to take, beginning with the share of `worker`.
  void RunBlocks(int worker);
  void KeepWorkersOffThisCpu();

  int threads_ = 1;  // with the launching one
  const CpuSet cpus_;
  const int spins_;
  std::mutex launching_;
  int launcher_cpu_ = -1;  // that the workers are kept off
  int launches_since_move_ = 0;
  KernelFn function_ = nullptr;
  void* const* params_ = nullptr;
  int parts_ = 1;
  std::vector<Share> shares_;
  std::atomic<uint32_t> launch_{0};  // odd: open
  std::atomic<int32_t> inside_{0};
  std::atomic<bool> quit_{false};
  std::vector<std::thread> workers_;
};

}  // namespace l3c::runtime
