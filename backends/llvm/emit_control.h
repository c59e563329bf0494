// One control unit as an LLVM function of layers/l0/control_code.h.
//
// Each region is a pointer of its own; an access is in the alias scope of its region and outside of
// all the others', so LLVM knows without analysis what a store cannot change. (The pointers are not
// `noalias`: the host reads regions while a queue is waited for.) The region that the host writes
// is read by atomic loads.
#pragma once

#include <string>

#include "layers/l0/control.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace l3c::llvm_backend {

// Appends `void NAME(ptr frame)` to `module`. Without `scopes` nothing is said of aliasing, which
// is only good for seeing what that costs.
void EmitControl(const l0::ControlUnit& unit, const std::string& name, bool scopes,
                 llvm::Module& module);

}  // namespace l3c::llvm_backend
