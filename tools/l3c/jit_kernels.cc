#include "tools/l3c/jit_kernels.h"

#include <utility>
#include <vector>

#include "backends/llvm/jit.h"
#include "backends/x86/control_emitter.h"
#include "tools/l3c/disk_cache.h"
#include "tools/l3c/own_code.h"

namespace l3c::tools {
namespace {

class JitKernels : public runtime::KernelTable {
 public:
  JitKernels(const l0::Plan& plan, std::unique_ptr<llvm_backend::Jit> jit,
             std::vector<runtime::KernelFn> functions)
      : jit_(std::move(jit)), functions_(std::move(functions)) {
    for (const l0::ControlUnit& unit : plan.control) {
      control_.push_back(std::make_unique<x86::LoadedControl>(
          x86::EmitControl(unit, unit.name, /*listing=*/false)));
    }
  }

  runtime::KernelFn Find(l0::KernelId kernel) const override { return functions_[kernel]; }
  l0::ControlFn FindControl(size_t unit) const override { return control_[unit]->function(); }

 private:
  const std::unique_ptr<llvm_backend::Jit> jit_;
  const std::vector<runtime::KernelFn> functions_;  // by kernel
  std::vector<std::unique_ptr<x86::LoadedControl>> control_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<runtime::KernelTable>> CompileKernels(const l0::Plan& plan) {
  llvm_backend::JitOptions options;
  options.cache = TheCache();
  absl::StatusOr<std::unique_ptr<llvm_backend::Jit>> jit = llvm_backend::Jit::Create(options);
  if (!jit.ok()) return jit.status();
  if (absl::Status status = (*jit)->Compile(KernelsOfUops(plan)); !status.ok()) return status;
  std::vector<runtime::KernelFn> functions;
  for (const l0::Kernel& kernel : plan.kernels) functions.push_back((*jit)->Find(kernel.name));
  for (const l0::KernelCode& code : plan.code) {
    absl::StatusOr<LoadedCode> loaded = LoadCode(code, plan.kernels[code.kernel], **jit);
    if (!loaded.ok()) return loaded.status();
    functions[code.kernel] = loaded->function;
  }
  return std::make_unique<JitKernels>(plan, std::move(*jit), std::move(functions));
}

}  // namespace l3c::tools
