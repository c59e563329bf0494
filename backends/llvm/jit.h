// Kernels to machine code, in memory: what kernel_compiler.h makes, linked by ORC.
//
//   auto jit = Jit::Create({});
//   RETURN_IF_ERROR((*jit)->Compile(plan.kernels));
//   KernelFn fn = (*jit)->Find("k3");
//   fn(params, 0, l0::NumBlocks(kernel));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_code.h"
#include "layers/support/blob_cache.h"

namespace l3c::llvm_backend {

// params: one pointer for each of the kernel's parameters, each buffer apart from every other
// unless both are only read. Runs blocks [block_begin, block_end) of the grid.
using KernelFn = void (*)(void* const* params, int64_t block_begin, int64_t block_end);

struct JitOptions {
  int threads = 2;         // that compile; the code does not depend on it
  bool keep_text = false;  // keep IR and assembly for Ir() and Assembly()
  bool contract = true;    // fuse a product into the sum that alone reads it
  // Feature string as in "+avx2,+fma,-avx512f", instead of the host's; for tests.
  std::string features;
  // Code from earlier runs (kernel_cache.h); it is not looked at with keep_text.
  support::BlobCache* cache = nullptr;
};

class Jit {
 public:
  static absl::StatusOr<std::unique_ptr<Jit>> Create(const JitOptions& options);
  virtual ~Jit() = default;

  // Compiles kernels that VerifyKernel accepts; names must be new. InvalidArgument for a kernel
  // that this backend cannot express, naming it and the op.
  virtual absl::Status Compile(absl::Span<const l0::Kernel> kernels) = 0;
  // The code of a kernel that is given as IR (own_ir.h), to be found under the kernel's name.
  virtual absl::Status CompileIr(const l0::KernelCode& code, const l0::Kernel& kernel) = 0;
  virtual KernelFn Find(std::string_view name) const = 0;  // nullptr when unknown

  // With keep_text; empty when unknown.
  virtual std::string Ir(std::string_view name) const = 0;
  virtual std::string Assembly(std::string_view name) const = 0;

  virtual int vector_registers() const = 0;  // of the target: 16 or 32
  virtual int vector_bits() const = 0;       // 128, 256 or 512
  virtual bool has_tiles() const = 0;        // products in tiles are instructions of the target
};

}  // namespace l3c::llvm_backend
