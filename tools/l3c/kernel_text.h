// What the backends make of a plan's kernels and control units, as text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/plan.h"

namespace l3c::tools {

struct CodeText {
  std::string name;      // of the kernel, or "control." and that of the unit
  std::string ir;        // LLVM IR, as it enters code generation
  std::string assembly;  // the instructions that run
};

absl::StatusOr<std::vector<CodeText>> WriteCode(const l0::Plan& plan);

}  // namespace l3c::tools
