// A kernel whose UOps stand in a file of their own: the escape hatch of L0.
//
//   #[l0::kernel("fast.uop")]
//   kernel dense(x: in f32 [128, 784], w: in f32 [784, 256], y: out f32 [128, 256]) { … }
//
// The file holds one kernel in the text of kernel_text.h. It takes the place of the declared one
// and keeps its name; its parameters must agree with those declared in order, access, type and
// shape, and it must pass VerifyKernel. Nothing looks inside before this layer. Once read it is
// part of the plan: a plan that is printed holds the UOps and no annotation.
#pragma once

#include <optional>
#include <string>

#include "layers/l0/kernel.h"
#include "layers/support/diagnostics.h"
#include "layers/support/escape_hatch.h"

namespace l3c::l0 {

// `folder`: that paths are relative to. Nothing after an error, which points at the annotation and
// says where in the file. All spans of the result are that of the annotation.
std::optional<Kernel> KernelFromFile(const support::EscapeHatch& hatch, const Kernel& declared,
                                     const std::string& folder, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
