#include "egraph/worker_pool.h"

namespace l3c::egraph {

WorkerPool::WorkerPool(uint32_t threads) {
  for (uint32_t t = 1; t < threads; ++t) workers_.emplace_back([this, t] { Work(t); });
}

WorkerPool::~WorkerPool() {
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
  body(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  body_ = nullptr;
}

void WorkerPool::Work(uint32_t thread) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return ending_ || round_ != seen; });
    if (ending_) return;
    seen = round_;
    const std::function<void(uint32_t)>& body = *body_;
    lock.unlock();
    body(thread);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace l3c::egraph
