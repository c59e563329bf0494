// A kernel that stands in a file of its own: the escape hatch of L0.
//
//   #[l0::kernel("fast.uop")]                 // its UOps: the text of one kernel (kernel_text.h)
//   #[l0::kernel("fast.ll")]                  // LLVM's IR; the function has the kernel's name
//   #[l0::kernel("libfast.so", dense_fast)]   // a shared object; the function is dense_fast
//   kernel dense(x: in f32 [128, 784], w: in f32 [784, 256], y: out f32 [128, 256]) { … }
//
// UOps take the place of those declared and keep the kernel's name; their parameters must agree
// with those declared in order, access, type and shape, and they must pass VerifyKernel. Code runs
// in place of the UOps declared (kernel_code.h); whether it is what it should be is found where it
// is compiled and loaded. Nothing looks inside before this layer. Once read it is part of the plan:
// a plan that is printed holds the UOps or the IR and no annotation.
#pragma once

#include <optional>
#include <string>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_code.h"
#include "layers/support/diagnostics.h"
#include "layers/support/escape_hatch.h"

namespace l3c::l0 {

// One of the two.
struct FileKernel {
  std::optional<Kernel> kernel;
  std::optional<KernelCode> code;  // its `kernel` is left to the caller
};

// `folder`: that paths are relative to. Nothing after an error, which points at the annotation and
// says where in the file. All spans of the result are that of the annotation.
std::optional<FileKernel> KernelFromFile(const support::EscapeHatch& hatch, const Kernel& declared,
                                         const std::string& folder,
                                         support::Diagnostics& diagnostics);

// The file that an annotation names; nothing where it names none.
std::optional<std::string> KernelPath(const support::EscapeHatch& hatch);

}  // namespace l3c::l0
