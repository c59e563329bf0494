// Executes the meaning of a kernel directly: no tiles, no lanes, reductions in the order of their
// axes. It is the oracle for every schedule and every backend, and a slow but complete one itself.
//
// Loads see parameters as they were before the call. Products are not fused with sums; an f32
// operation rounds to f32. With `widen`, f32 values are kept in f64 between load and store.
#pragma once

#include <cstdint>

#include "layers/l0/kernel.h"

namespace l3c::l0 {

struct InterpreterOptions {
  bool widen = false;
};

// Runs blocks [block_begin, block_end) of a kernel that VerifyKernel accepts. `params` points to
// the kernel's buffers in the order of its parameters. Distinct calls may run concurrently.
void Run(const Kernel& kernel, void* const* params, int64_t block_begin, int64_t block_end,
         const InterpreterOptions& options = {});

}  // namespace l3c::l0
