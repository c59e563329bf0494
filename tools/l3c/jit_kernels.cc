#include "tools/l3c/jit_kernels.h"

#include <utility>
#include <vector>

#include "backends/llvm/jit.h"
#include "backends/x86/control_emitter.h"
#include "tools/l3c/disk_cache.h"

namespace l3c::tools {
namespace {

class JitKernels : public runtime::KernelTable {
 public:
  JitKernels(const l0::Plan& plan, std::unique_ptr<llvm_backend::Jit> jit)
      : plan_(plan), jit_(std::move(jit)) {
    for (const l0::ControlUnit& unit : plan.control) {
      control_.push_back(std::make_unique<x86::LoadedControl>(
          x86::EmitControl(unit, unit.name, /*listing=*/false)));
    }
  }

  runtime::KernelFn Find(l0::KernelId kernel) const override {
    return jit_->Find(plan_.kernels[kernel].name);
  }
  l0::ControlFn FindControl(size_t unit) const override { return control_[unit]->function(); }

 private:
  const l0::Plan& plan_;
  std::unique_ptr<llvm_backend::Jit> jit_;
  std::vector<std::unique_ptr<x86::LoadedControl>> control_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<runtime::KernelTable>> CompileKernels(const l0::Plan& plan) {
  llvm_backend::JitOptions options;
  options.cache = TheCache();
  absl::StatusOr<std::unique_ptr<llvm_backend::Jit>> jit = llvm_backend::Jit::Create(options);
  if (!jit.ok()) return jit.status();
  if (absl::Status status = (*jit)->Compile(plan.kernels); !status.ok()) return status;
  return std::make_unique<JitKernels>(plan, std::move(*jit));
}

}  // namespace l3c::tools
