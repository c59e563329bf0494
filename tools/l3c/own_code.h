// Code that runs in place of UOps (layers/l0/kernel_code.h): found, and held against the UOps.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/llvm/jit.h"
#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"
#include "runtime/kernel_table.h"

namespace l3c::tools {

// The kernels whose UOps run.
std::vector<l0::Kernel> KernelsOfUops(const l0::Plan& plan);

// A shared object stays loaded until the program ends.
struct LoadedCode {
  runtime::KernelFn function = nullptr;
  l0::CodeClass how_near = l0::CodeClass::kExact;
};

// InvalidArgument says what is wrong with the code, Unavailable what kept it from being read.
absl::StatusOr<LoadedCode> LoadCode(const l0::KernelCode& code, const l0::Kernel& kernel,
                                    llvm_backend::Jit& jit);

// Loads all code of a plan and runs each once, on random numbers in a process of its own, beside
// the UOps: it must end, write nothing but what they write, give the same bits whether blocks are
// computed one by one or at once, and come as near as it says. A kernel of more work than the
// interpreter does in a moment is compared on some of its blocks; where one block is more, only
// that it ends and writes nothing else. False after errors, which point at the code or its
// annotation.
bool CheckOwnCode(const l0::Plan& plan, support::Diagnostics& diagnostics);

}  // namespace l3c::tools
