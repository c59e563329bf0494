// Where the runtime finds the code of a plan's kernels. Backends implement it; so does the
// interpreter (runtime/interpreter_kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/l0/control_code.h"
#include "layers/l0/plan.h"

namespace l3c::runtime {

// Runs the grid blocks [block_begin, block_end) of a kernel (see l0::NumBlocks). `params` holds the
// address of each argument in the order of the kernel's parameters, and after the last of them the
// table's Context for the kernel. Blocks write disjoint bytes: any partition of them over threads
// gives the same result.
using KernelFn = void (*)(void* const* params, int64_t block_begin, int64_t block_end);

class KernelTable {
 public:
  virtual ~KernelTable() = default;
  // Null when the table has no code for the kernel. Called once a kernel, before the run.
  virtual KernelFn Find(l0::KernelId kernel) const = 0;
  virtual void* Context(l0::KernelId kernel) const {
    (void)kernel;
    return nullptr;
  }
  // Of plan.control[unit]; null: the unit is interpreted.
  virtual l0::ControlFn FindControl(size_t unit) const {
    (void)unit;
    return nullptr;
  }
};

}  // namespace l3c::runtime
