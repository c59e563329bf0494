#include "tools/l3c/built_code.h"

#include "absl/strings/str_cat.h"
#include "backends/llvm/kernel_compiler.h"
#include "backends/x86/control_emitter.h"
#include "tools/l3c/own_code.h"

namespace l3c::tools {

absl::StatusOr<elf::ObjectLinker> BuildCode(const l0::Plan& plan, const std::string& features) {
  auto compiler = llvm_backend::KernelCompiler::Create({.features = features});
  if (!compiler.ok()) return compiler.status();
  absl::StatusOr<std::vector<llvm_backend::CompiledModule>> modules =
      (*compiler)->Compile(KernelsOfUops(plan));
  if (!modules.ok()) return modules.status();
  elf::ObjectLinker linker;
  for (const llvm_backend::CompiledModule& module : *modules) {
    if (absl::Status status = linker.Add(module.object); !status.ok()) return status;
  }
  for (const l0::KernelCode& code : plan.code) {
    const l0::Kernel& kernel = plan.kernels[code.kernel];
    if (code.form == l0::KernelCode::Form::kObject) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel '", kernel.name, "' runs code of '", code.path,
                       "': a program holds all of its code and loads none; l3c run does, and a .ll "
                       "file becomes part of the program"));
    }
    auto module = (*compiler)->CompileIr(code, kernel, kernel.name);
    if (!module.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the code of kernel '", kernel.name, "': ", module.status().message()));
    }
    if (absl::Status status = linker.Add(module->object); !status.ok()) return status;
  }
  for (const l0::ControlUnit& unit : plan.control) {
    linker.AddFunction(ControlName(unit),
                       x86::EmitControl(unit, unit.name, /*listing=*/false).bytes);
  }
  return linker;
}

// No kernel's name holds a dot.
std::string ControlName(const l0::ControlUnit& unit) { return "control." + unit.name; }

}  // namespace l3c::tools
