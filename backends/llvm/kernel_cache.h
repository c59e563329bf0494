// Machine code of kernels kept from run to run.
//
// The code of a kernel depends on its text but for the name, on the features of the target, and on
// how it is compiled; functions of one module do not affect one another. So a kernel's code is kept
// under just that, wherever it stands in whatever plan: a symbol made of the digest of the text
// takes the place of the name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "layers/l0/kernel.h"
#include "layers/support/blob_cache.h"

namespace l3c::llvm_backend {

// An ELF object with one function for each of some kernels.
struct KernelObject {
  size_t first = 0, count = 0;  // of the kernels given to the compiler
  std::vector<char> object;
};
using CompileKernels =
    std::function<absl::StatusOr<std::vector<KernelObject>>(absl::Span<const l0::Kernel>)>;

struct LinkedKernels {
  struct Object {
    std::vector<char> bytes;
    std::vector<size_t> kernels;  // whose code is in it, of those asked for
  };
  std::vector<Object> objects;       // symbols of one may stand in another, too
  std::vector<std::string> symbols;  // of each kernel
};

// Takes from the cache what is there, compiles the rest, and keeps that. `target` holds all besides
// a kernel that its code depends on.
absl::StatusOr<LinkedKernels> CompileWithCache(support::BlobCache& cache, const std::string& target,
                                               absl::Span<const l0::Kernel> kernels,
                                               const CompileKernels& compile);

}  // namespace l3c::llvm_backend
