// Predicted time of a step: of one run of a sequence in a plan that goes on and on.
//
// The search adds up what kernels cost by themselves, which is all it can know while it chooses. A
// plan says more: in which order its launches touch which bytes. So each launch is timed here by
// the cache level in which it finds them, after the least recently used of everything that the
// sequence touches, in pages:
//
//   launch  = max(arithmetic, Σ over levels: bytes found there / its bandwidth) + launch overhead
//   step    = Σ launches + the copies of the loader / cores
//
// since the loader takes its time from the cores that compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "layers/l0/plan.h"

namespace l3c::cost {

struct LaunchTime {
  uint32_t command = 0;  // its place in the sequence
  double seconds = 0;
  std::string_view evidence;
};

struct StepTime {
  double seconds = 0;
  double loads = 0;  // of it, for batches that are copied beside it
  std::vector<LaunchTime> launches;
  std::string_view evidence;  // the worst of the launches'
};

StepTime PredictStep(const l0::Plan& plan, const l0::Sequence& sequence, const CpuCostModel& model);
// Of the first sequence that reports of training; nothing where there is none, or where several
// streams compute, which this model does not put side by side.
std::optional<StepTime> PredictTrainingStep(const l0::Plan& plan, const CpuCostModel& model);

}  // namespace l3c::cost
