#include "egraph/worker_pool.h"

#include <utility>

namespace l3c::egraph {

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

void WorkerPool::Run(const std::function<void(uint32_t)>& body) {
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    running_ = static_cast<uint32_t>(workers_.size());
    ++round_;
  }
  start_.notify_all();
  Call(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  body_ = nullptr;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

// The others may still be at work on what the caller of Run() owns, so nothing unwinds before all
// are done.
void WorkerPool::Call(uint32_t thread) {
  try {
    (*body_)(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void WorkerPool::Work(uint32_t thread) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return ending_ || round_ != seen; });
    if (ending_) return;
    seen = round_;
    lock.unlock();
    Call(thread);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace l3c::egraph
