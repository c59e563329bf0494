// A bar on standard error for work whose share that is done is known.
#pragma once

#include <chrono>
#include <string>

namespace l3c::tools {

class ProgressBar {
 public:
  // `shown`: false where standard error is no terminal.
  explicit ProgressBar(bool shown) : shown_(shown) {}
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `share`: 0 … 1. `left_seconds`: below 0, it is told from the share and the time until here.
  void Show(const std::string& what, double share, double left_seconds = -1) const;
  // So that ordinary output can follow.
  void Clear() const;

 private:
  const bool shown_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace l3c::tools
