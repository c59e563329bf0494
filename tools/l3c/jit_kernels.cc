#include "tools/l3c/jit_kernels.h"

#include <utility>

#include "backends/llvm/jit.h"
#include "tools/l3c/disk_cache.h"

namespace l3c::tools {
namespace {

class JitKernels : public runtime::KernelTable {
 public:
  JitKernels(const l0::Plan& plan, std::unique_ptr<llvm_backend::Jit> jit)
      : plan_(plan), jit_(std::move(jit)) {}

  runtime::KernelFn Find(l0::KernelId kernel) const override {
    return jit_->Find(plan_.kernels[kernel].name);
  }

 private:
  const l0::Plan& plan_;
  std::unique_ptr<llvm_backend::Jit> jit_;
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
