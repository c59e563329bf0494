#include "tools/l3c/executable.h"

#include <utility>

#include "runtime/interpreter_kernels.h"
#include "tools/l3c/files.h"
#ifdef L3C_HAS_LLVM
#include "tools/l3c/jit_kernels.h"
#endif

namespace l3c::tools {

std::unique_ptr<runtime::KernelTable> MakeKernels(const l0::Plan& plan, const std::string& engine) {
  if (engine == "interpreter") return std::make_unique<runtime::InterpreterKernels>(plan);
#ifdef L3C_HAS_LLVM
  absl::StatusOr<std::unique_ptr<runtime::KernelTable>> kernels = CompileKernels(plan);
  if (kernels.ok()) return std::move(*kernels);
  EnvironmentError(std::string(kernels.status().message()));
#else
  EnvironmentError("this build has no kernel compiler", "--engine interpreter runs without one");
#endif
  return nullptr;
}

}  // namespace l3c::tools
