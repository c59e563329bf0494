// Threads that share the grid blocks of a kernel.
//
// A launch cuts [0, blocks) into one contiguous piece a worker, the same pieces every time; the
// launching thread is worker 0. Workers spin for a moment between launches and then sleep. Since
// blocks write disjoint bytes and no block's result depends on another's, results do not depend on
// the number of workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

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
  void Work(int worker);
  void RunShare(int worker, int parts) const;

  int threads_ = 1;  // with the launching one
  const int spins_;
  std::mutex launching_;
  // The launch under way; workers read it only while it counts them in `parts`.
  KernelFn function_ = nullptr;
  void* const* params_ = nullptr;
  int64_t blocks_ = 0;
  // generation << 16 | number of workers that take part. One word, so that a worker which sleeps
  // through a launch it has no part in never reads the fields of the next one by mistake.
  std::atomic<uint64_t> launch_{0};
  std::atomic<int32_t> pending_{0};  // other workers that are not done
  std::atomic<bool> quit_{false};
  std::vector<std::thread> workers_;
};

}  // namespace l3c::runtime
