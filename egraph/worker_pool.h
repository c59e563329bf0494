// A few threads that wait for work, for loops whose turns are independent.
#pragma once

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
  // Calls `body(thread)` once on every thread, the caller's being 0, and returns when all are done.
  // What one of them throws is thrown on then; of several, what was thrown first.
  void Run(const std::function<void(uint32_t thread)>& body);

 private:
  void Work(uint32_t thread);
  void Call(uint32_t thread);
  void End();

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(uint32_t)>* body_ = nullptr;
  uint64_t round_ = 0;
  uint32_t running_ = 0;
  bool ending_ = false;
  std::exception_ptr thrown_;  // in this round
  std::vector<std::thread> workers_;
};

}  // namespace l3c::egraph
