// How long a plan's whole training steps take, on random data of the declared domains.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools::tune {

struct StepTimes {
  double median = 0;         // seconds of a step, after the first ones
  size_t steps = 0;          // that were timed
  std::vector<double> sums;  // what the first steps reported, in order: the loss and what else
};

// Runs training steps until `seconds` of them are timed or the plan's own end, at least kLeastSteps
// after kUntimed. Nothing is written. Cancelled after InterruptTiming.
inline constexpr size_t kUntimed = 3;
inline constexpr size_t kLeastSteps = 5;
inline constexpr size_t kSumsKept = 50;
absl::StatusOr<StepTimes> TimeSteps(const l0::Plan& plan, const runtime::KernelTable& kernels,
                                    int threads, double seconds);
// Ends what is being timed. Async-signal-safe.
void InterruptTiming();

}  // namespace l3c::tools::tune
