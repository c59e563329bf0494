// The kernels and control units of a plan as machine code for a program file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backends/elf/object_linker.h"
#include "layers/l0/plan.h"

namespace l3c::tools {

// `features`: what kernels may use, as "+avx2,+fma". One function a kernel, by its name, and one a
// control unit, by ControlName.
absl::StatusOr<elf::ObjectLinker> BuildCode(const l0::Plan& plan, const std::string& features);

std::string ControlName(const l0::ControlUnit& unit);

}  // namespace l3c::tools
