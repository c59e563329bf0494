// One run of a kernel's own code beside its UOps.
#pragma once

#include "absl/status/status.h"
#include "layers/l0/kernel_code.h"
#include "runtime/kernel_table.h"

namespace l3c::tools {

// What CheckOwnCode (own_code.h) asks of one kernel. OutOfRange: the code does not end, or writes
// where it may not; InvalidArgument: it computes something else. Where the interpreter would take
// long, some blocks are compared, among them the first and the last along every grid axis: tails
// and masks are there. Where even these are too many, or the buffers too large, nothing is: that is
// ResourceExhausted when `must_compare`, and else taken as it is. `context`: of the kernel table
// that the code is of.
absl::Status TryCode(const l0::Kernel& kernel, runtime::KernelFn code, l0::CodeClass how_near,
                     bool must_compare = false, void* context = nullptr);

}  // namespace l3c::tools
