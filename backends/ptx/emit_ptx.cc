#include "backends/ptx/emit_ptx.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "backends/ptx/ptx_text.h"
#include "backends/ptx/registers.h"
#include "backends/ptx/select.h"
#include "layers/l0/linearize.h"

namespace l3c::ptx {
namespace {

constexpr std::array<std::string_view, 5> kTargets = {"sm_80", "sm_86", "sm_89", "sm_90a",
                                                      "sm_100"};
// The first version of the ISA that has the target.
constexpr std::array<std::string_view, 5> kVersions = {"7.0", "7.1", "7.8", "8.0", "8.6"};

}  // namespace

std::span<const std::string_view> Targets() { return kTargets; }

absl::StatusOr<std::string> EmitPtx(const l0::Kernel& kernel, const EmitOptions& options) {
  if (!kernel.launch) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, " has no launch: it is not scheduled for a GPU"));
  }
  const std::string arch(options.target.empty() ? kernel.launch->arch : options.target);
  const auto target = std::find(kTargets.begin(), kTargets.end(), arch);
  if (target == kTargets.end()) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, ": no PTX is made for '",
                                                   arch, "'; there are sm_80, sm_86, sm_89, ",
                                                   "sm_90a and sm_100"));
  }
  absl::StatusOr<l0::LinearKernel> linear = l0::Linearize(kernel, {.threads = true});
  if (!linear.ok()) return linear.status();
  absl::StatusOr<Function> function = Select(*linear, {options.approximate});
  if (!function.ok()) return function.status();
  RemoveDead(*function);
  return PrintModule(*function, arch, kVersions[static_cast<size_t>(target - kTargets.begin())]);
}

}  // namespace l3c::ptx
