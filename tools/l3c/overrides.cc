#include "tools/l3c/overrides.h"

#include <string>

#include "tools/l3c/files.h"

namespace l3c::tools {
namespace {

bool OnePhase(size_t phases, const RunLength& length) {
  if (phases == 1 || (!length.epochs && !length.steps)) return true;
  return EnvironmentError(
      "--epochs and --steps need a program of one phase; this one has " + std::to_string(phases),
      "edit the phases in its text");
}

// The read-only words that bound the loop of the training unit (layers/l0/control_build.h): its
// first is the number of steps, its second the steps of an epoch.
l0::Region* Limits(l0::Plan& plan) {
  if (plan.control.empty()) return nullptr;
  for (l0::Region& region : plan.control.front().regions) {
    if (region.name == "limits" && region.values.size() >= 2) return &region;
  }
  return nullptr;
}

}  // namespace

bool Override(l1::Program& program, const RunLength& length) {
  if (!OnePhase(program.schedule.phases.size(), length)) return false;
  if (length.seed) program.schedule.seed = *length.seed;
  for (l1::Phase& phase : program.schedule.phases) {
    if (length.epochs || length.steps) {
      phase.epochs = length.epochs.value_or(0);
      phase.steps = length.steps.value_or(0);
    }
  }
  return true;
}

bool Override(l0::Plan& plan, const RunLength& length) {
  if (!OnePhase(plan.phases.size(), length)) return false;
  if (length.seed) {
    for (l0::InitOp& op : plan.init) {
      if (op.kind == l0::InitKind::kNormal || op.kind == l0::InitKind::kUniform)
        op.seed = *length.seed;
    }
    for (l0::Sampler& sampler : plan.samplers) {
      if (sampler.kind != l0::SampleKind::kSequential) sampler.seed = *length.seed;
    }
  }
  if (!length.epochs && !length.steps) return true;
  l0::Region* limits = Limits(plan);
  if (limits == nullptr) {
    return EnvironmentError(
        "--epochs and --steps need the region 'limits' in the plan's first "
        "control unit",
        "edit the control unit's own bounds");
  }
  const int64_t per_epoch = limits->values[1];
  int64_t steps = length.steps.value_or(0);
  if (!length.steps && __builtin_mul_overflow(*length.epochs, per_epoch, &steps)) {
    return EnvironmentError(std::to_string(*length.epochs) + " epochs of " +
                                std::to_string(per_epoch) +
                                " steps each are more steps than can be counted",
                            "take fewer with --epochs, or give --steps");
  }
  l0::Phase& phase = plan.phases.front();
  phase.epochs = length.epochs.value_or(0);
  phase.steps = steps;
  limits->values[0] = phase.steps;
  return true;
}

}  // namespace l3c::tools
