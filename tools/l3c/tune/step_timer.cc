#include "tools/l3c/tune/step_timer.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>

#include "runtime/events.h"
#include "runtime/session.h"

namespace l3c::tools::tune {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

// From one training step's report to the next's.
class Stopwatch : public runtime::EventSink {
 public:
  explicit Stopwatch(double seconds) : wanted_(seconds) {}

  void OnReport(const runtime::Report& report) override {
    if (report.split != "train") return;
    const Clock::time_point now = Clock::now();
    if (sums_.size() < kSumsKept) {
      for (const runtime::Value& value : report.values) sums_.push_back(value.value);
    }
    if (before_ && seen_++ >= kUntimed) {
      const double step = std::chrono::duration<double>(now - *before_).count();
      steps_.push_back(step);
      timed_ += step;
    }
    before_ = now;
    if (!asked_ && steps_.size() >= kLeastSteps && timed_ >= wanted_) {
      asked_ = true;
      runtime::RequestStop();
    }
  }
  // What comes between belongs to no step.
  void OnPeriod(const runtime::Period&) override { before_.reset(); }
  void OnCheckpoint(const runtime::CheckpointWritten&) override { before_.reset(); }

  StepTimes Take() {
    StepTimes times;
    times.steps = steps_.size();
    times.sums = std::move(sums_);
    if (steps_.empty()) return times;
    const auto middle = steps_.begin() + static_cast<int64_t>(steps_.size() / 2);
    std::nth_element(steps_.begin(), middle, steps_.end());
    times.median = *middle;
    return times;
  }

 private:
  const double wanted_;
  std::optional<Clock::time_point> before_;
  size_t seen_ = 0;
  std::vector<double> steps_;
  std::vector<double> sums_;
  double timed_ = 0;
  bool asked_ = false;
};

}  // namespace

absl::StatusOr<StepTimes> TimeSteps(const l0::Plan& plan, const runtime::KernelTable& kernels,
                                    int threads, double seconds) {
  runtime::RunOptions options;
  options.threads = threads;
  options.synthetic = true;
  Stopwatch watch(seconds);
  const absl::StatusOr<runtime::RunResult> result = runtime::Train(plan, kernels, options, watch);
  if (interrupted) {
    interrupted = 0;
    return absl::CancelledError("interrupted");
  }
  if (!result.ok()) return result.status();
  StepTimes times = watch.Take();
  if (times.steps == 0) {
    return absl::FailedPreconditionError(
        "the plan makes too few steps to time one: --steps takes more");
  }
  return times;
}

void InterruptTiming() {
  interrupted = 1;
  runtime::RequestStop();
}

}  // namespace l3c::tools::tune
