// Kernels to machine code, at rest: linear UOps (layers/l0/linearize.h) → LLVM IR → a relocatable
// object, and its IR and assembly as text. The just-in-time compiler (jit.h) and `l3c build` take
// their code from here, so that both run the same instructions.
//
// The instruction set is chosen by the host's feature flags, never by a CPU's name. A kernel may
// use more lanes than the machine has; such vectors are split. No fast-math flag is set: the only
// liberties taken are those that the linear form spells out (MULACC, partial sums), so a kernel
// gives the same bits for every partition of its blocks and on every run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "layers/l0/control.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_code.h"

namespace l3c::llvm_backend {

struct CompilerOptions {
  int threads = 2;       // that compile; the code does not depend on it
  bool text = false;     // IR and assembly as well; a module then holds one kernel
  bool contract = true;  // fuse a product into the sum that alone reads it
  // Feature string as in "+avx2,+fma,-avx512f", instead of the host's.
  std::string features;
};

// Some kernels in a row.
struct CompiledModule {
  size_t first = 0;  // of the kernels given
  size_t count = 0;
  std::vector<char> object;  // ELF, position independent; one function a kernel, by its name
  std::string ir;
  std::string assembly;
};

class KernelCompiler {
 public:
  static absl::StatusOr<std::unique_ptr<KernelCompiler>> Create(const CompilerOptions& options);
  virtual ~KernelCompiler() = default;

  // Kernels that VerifyKernel accepts. InvalidArgument for a kernel that this backend cannot
  // express, naming it and the op.
  virtual absl::StatusOr<std::vector<CompiledModule>> Compile(
      absl::Span<const l0::Kernel> kernels) = 0;

  // The code of a kernel that is given as IR (own_ir.h) as a function `name`. InvalidArgument says
  // what is wrong with it.
  virtual absl::StatusOr<CompiledModule> CompileIr(const l0::KernelCode& code,
                                                   const l0::Kernel& kernel,
                                                   const std::string& name) = 0;

  // A control unit as a function `name` of layers/l0/control_code.h, with its text in any case. The
  // IR is as it leaves the passes that use what is known of aliasing. `scopes`: see emit_control.h.
  virtual absl::StatusOr<CompiledModule> CompileControl(const l0::ControlUnit& unit,
                                                        const std::string& name,
                                                        bool scopes = true) = 0;

  virtual const std::string& features() const = 0;  // of the target, as in CompilerOptions
  virtual int vector_registers() const = 0;         // 16 or 32
  virtual int vector_bits() const = 0;              // 128, 256 or 512
  virtual bool has_tiles() const = 0;               // of AMX, for products in tiles
};

}  // namespace l3c::llvm_backend
