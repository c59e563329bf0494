// Kernels compiled for this CPU by backends/llvm, or the code that they have of their own; control
// units by backends/x86.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools {

// The plan must outlive the table.
absl::StatusOr<std::unique_ptr<runtime::KernelTable>> CompileKernels(const l0::Plan& plan);

}  // namespace l3c::tools
