// A plan with code for its kernels: compiled for this CPU, or the interpreter.
#pragma once

#include <memory>
#include <string>

#include "layers/l0/plan.h"
#include "runtime/kernel_table.h"

namespace l3c::tools {

// `engine`: "jit" or "interpreter". Null after printing why there is no code. The plan must outlive
// the result.
std::unique_ptr<runtime::KernelTable> MakeKernels(const l0::Plan& plan, const std::string& engine);

}  // namespace l3c::tools
