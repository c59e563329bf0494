#include "tools/l3c/executable.h"

#include "backends/llvm/jit.h"
#include "runtime/interpreter_kernels.h"
#include "tools/l3c/files.h"

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

std::unique_ptr<runtime::KernelTable> MakeKernels(const l0::Plan& plan, const std::string& engine) {
  if (engine == "interpreter") return std::make_unique<runtime::InterpreterKernels>(plan);
  absl::StatusOr<std::unique_ptr<llvm_backend::Jit>> jit = llvm_backend::Jit::Create({});
  const absl::Status status = jit.ok() ? (*jit)->Compile(plan.kernels) : jit.status();
  if (!status.ok()) {
    EnvironmentError(std::string(status.message()));
    return nullptr;
  }
  return std::make_unique<JitKernels>(plan, std::move(*jit));
}

}  // namespace l3c::tools
