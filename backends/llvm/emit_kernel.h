// One linear kernel (layers/l0/linearize.h) as an LLVM function: a rule for each of its ops.
#pragma once

#include "absl/status/status.h"
#include "backends/llvm/transcendental.h"
#include "layers/l0/linearize.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace l3c::llvm_backend {

// Appends `void NAME(ptr params, i64 block_begin, i64 block_end)` to `module`. The body is a
// private function that takes each parameter as a pointer of its own, declared not to alias the
// others.
void EmitKernel(const l0::LinearKernel& kernel, const TranscendentalTarget& target,
                llvm::Module& module);

}  // namespace l3c::llvm_backend
