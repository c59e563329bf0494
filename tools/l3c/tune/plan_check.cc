#include "tools/l3c/tune/plan_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "layers/l0/kernel_text.h"
#include "runtime/sha256.h"
#include "tools/l3c/code_trial.h"
#include "tools/l3c/tune/checking_kernels.h"
#include "tools/l3c/tune/step_timer.h"

namespace l3c::tools::tune {

namespace {

std::string DigestOf(l0::Kernel kernel) {
  kernel.name = "k";
  kernel.origin.clear();
  return runtime::Sha256Of(l0::PrintKernel(kernel));
}

std::set<l0::KernelId> CalledInTraining(const l0::Plan& plan) {
  std::set<l0::KernelId> called;
  for (const l0::Sequence& sequence : plan.sequences) {
    bool trains = false;
    for (const l0::Command& command : sequence.commands) {
      trains |= command.kind == l0::CommandKind::kReport && command.split == "train";
    }
    for (const l0::Command& command : sequence.commands) {
      if (trains && command.kind == l0::CommandKind::kLaunch) called.insert(command.kernel);
    }
  }
  return called;
}

}  // namespace

std::string CheckKernels(const l0::Plan& plan, const runtime::KernelTable& kernels,
                         const l0::Plan& best, const std::string& numerics,
                         std::set<std::string>& known) {
  const bool fast = numerics == "fast";
  std::vector<std::string> digests;
  std::vector<bool> skip;
  for (const l0::Kernel& kernel : plan.kernels) {
    digests.push_back(DigestOf(kernel));
    skip.push_back(known.contains(digests.back()));
  }
  // Code of the user's own was tried when the plan was made.
  for (const l0::KernelCode& code : plan.code) skip[code.kernel] = true;
  const CheckingKernels checking(plan, kernels, fast ? 1e-2 : 1e-5, skip);
  const absl::StatusOr<StepTimes> run = TimeSteps(plan, checking, /*threads=*/1, /*seconds=*/0);
  if (!run.ok()) return std::string(run.status().message());
  std::string fault = checking.Fault();
  if (!fault.empty()) return fault;
  const std::set<l0::KernelId> called = CalledInTraining(plan);
  for (l0::KernelId id : called) {
    if (skip[id]) continue;
    if (!checking.Compared(id)) return "kernel '" + plan.kernels[id].name + "' was not called";
    known.insert(digests[id]);
  }
  std::set<std::string> predicted;
  for (const l0::Kernel& kernel : best.kernels) predicted.insert(DigestOf(kernel));
  for (l0::KernelId id = 0; id < plan.kernels.size(); ++id) {
    if (called.contains(id) || skip[id] || predicted.contains(digests[id])) continue;
    const absl::Status status = TryCode(plan.kernels[id], kernels.Find(id),
                                        fast ? l0::CodeClass::kFast : l0::CodeClass::kReassoc);
    if (!status.ok()) {
      return "kernel '" + plan.kernels[id].name + "': " + std::string(status.message());
    }
    known.insert(digests[id]);
  }
  return "";
}

std::string CompareSums(const std::vector<double>& expected, const std::vector<double>& found,
                        const std::string& numerics) {
  const double tolerance = numerics == "exact" ? 0 : numerics == "fast" ? 1e-2 : 1e-3;
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const double want = expected[i], have = found[i];
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    if (std::abs(want - have) <= tolerance * std::abs(want)) continue;
    // Counts, of right answers, say, turn over at a rounding.
    if (tolerance > 0 && want == std::floor(want) && have == std::floor(have)) continue;
    char text[128];
    std::snprintf(text, sizeof text, "its steps report %.9g where the predicted best's report %.9g",
                  have, want);
    return text;
  }
  return "";
}

}  // namespace l3c::tools::tune
