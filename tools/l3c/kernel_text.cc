#include "tools/l3c/kernel_text.h"

#include <utility>

#include "backends/llvm/kernel_compiler.h"
#include "backends/x86/control_emitter.h"
#include "tools/l3c/own_code.h"

namespace l3c::tools {

absl::StatusOr<std::vector<CodeText>> WriteCode(const l0::Plan& plan) {
  auto compiler = llvm_backend::KernelCompiler::Create({.text = true});
  if (!compiler.ok()) return compiler.status();
  const std::vector<l0::Kernel> kernels = KernelsOfUops(plan);
  absl::StatusOr<std::vector<llvm_backend::CompiledModule>> modules = (*compiler)->Compile(kernels);
  if (!modules.ok()) return modules.status();
  std::vector<CodeText> texts;
  for (llvm_backend::CompiledModule& module : *modules) {
    texts.push_back({kernels[module.first].name, std::move(module.ir), std::move(module.assembly)});
  }
  // What lies in a shared object has no text.
  for (const l0::KernelCode& code : plan.code) {
    if (code.form == l0::KernelCode::Form::kObject) continue;
    const l0::Kernel& kernel = plan.kernels[code.kernel];
    auto module = (*compiler)->CompileIr(code, kernel, kernel.name);
    if (!module.ok()) return module.status();
    texts.push_back({kernel.name, std::move(module->ir), std::move(module->assembly)});
  }
  for (const l0::ControlUnit& unit : plan.control) {
    const std::string name = "control." + unit.name;
    absl::StatusOr<llvm_backend::CompiledModule> module = (*compiler)->CompileControl(unit, name);
    if (!module.ok()) return module.status();
    texts.push_back({name, std::move(module->ir), x86::EmitControl(unit, name, true).assembly});
  }
  return texts;
}

}  // namespace l3c::tools
