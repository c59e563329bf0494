// One run of a kernel's own code beside its UOps.
#pragma once

#include "absl/status/status.h"
#include "layers/l0/kernel_code.h"
#include "runtime/kernel_table.h"

namespace l3c::tools {

// What CheckOwnCode (own_code.h) asks of one kernel. OutOfRange: the code does not end, or writes
// where it may not; InvalidArgument: it computes something else. Where the interpreter would take
// long, some blocks are compared, those at the ends of the grid axes among them.
absl::Status TryCode(const l0::Kernel& kernel, runtime::KernelFn code, l0::CodeClass how_near);

}  // namespace l3c::tools
