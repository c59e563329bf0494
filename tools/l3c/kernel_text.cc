#include "tools/l3c/kernel_text.h"

#include "backends/llvm/kernel_compiler.h"

namespace l3c::tools {

absl::StatusOr<std::vector<KernelText>> WriteKernels(const l0::Plan& plan) {
  auto compiler = llvm_backend::KernelCompiler::Create({.text = true});
  if (!compiler.ok()) return compiler.status();
  absl::StatusOr<std::vector<llvm_backend::CompiledModule>> modules =
      (*compiler)->Compile(plan.kernels);
  if (!modules.ok()) return modules.status();
  std::vector<KernelText> texts;
  for (llvm_backend::CompiledModule& module : *modules) {
    texts.push_back({plan.kernels[module.first].name, std::move(module.ir),
                     std::move(module.assembly)});
  }
  return texts;
}

}  // namespace l3c::tools
