#include "tools/l3c/kernel_text.h"

#include <utility>

#include "backends/llvm/kernel_compiler.h"
#include "backends/x86/control_emitter.h"

namespace l3c::tools {

absl::StatusOr<std::vector<CodeText>> WriteCode(const l0::Plan& plan) {
  auto compiler = llvm_backend::KernelCompiler::Create({.text = true});
  if (!compiler.ok()) return compiler.status();
  absl::StatusOr<std::vector<llvm_backend::CompiledModule>> modules =
      (*compiler)->Compile(plan.kernels);
  if (!modules.ok()) return modules.status();
  std::vector<CodeText> texts;
  for (llvm_backend::CompiledModule& module : *modules) {
    texts.push_back(
        {plan.kernels[module.first].name, std::move(module.ir), std::move(module.assembly)});
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
