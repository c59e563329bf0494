// What backends/llvm makes of a plan's kernels, as text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"

namespace l3c::tools {

struct KernelText {
  std::string kernel;
  std::string ir;        // LLVM IR, as it enters code generation
  std::string assembly;  // the instructions that run
};

absl::StatusOr<std::vector<KernelText>> WriteKernels(const l0::Plan& plan);

}  // namespace l3c::tools
