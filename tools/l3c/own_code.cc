#include "tools/l3c/own_code.h"

#include <dlfcn.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/llvm/own_ir.h"
#include "tools/l3c/code_trial.h"

namespace l3c::tools {
namespace {

absl::StatusOr<LoadedCode> LoadObject(const l0::KernelCode& code, const l0::Kernel& kernel) {
  void* object = dlopen(code.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return absl::UnavailableError(dlerror());
  LoadedCode loaded;
  loaded.function = reinterpret_cast<runtime::KernelFn>(dlsym(object, code.symbol.c_str()));
  if (loaded.function == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", code.path, "' has no function '", code.symbol, "'"));
  }
  const std::string name = code.symbol + "_signature";
  const auto* signature = static_cast<const char*>(dlsym(object, name.c_str()));
  if (signature == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", code.path, "' has no '", name, "'; it says what the code is for: char ",
                     name, "[] = \"", l0::SignatureOf(kernel), " exact\", or reassoc, or fast"));
  }
  std::string fault;
  const auto how_near = l0::ReadSignature(signature, kernel, fault);
  if (!how_near) return absl::InvalidArgumentError(fault);
  loaded.how_near = *how_near;
  return loaded;
}

}  // namespace

std::vector<l0::Kernel> KernelsOfUops(const l0::Plan& plan) {
  std::set<l0::KernelId> own;
  for (const l0::KernelCode& code : plan.code) own.insert(code.kernel);
  std::vector<l0::Kernel> kernels;
  for (l0::KernelId id = 0; id < plan.kernels.size(); ++id) {
    if (!own.contains(id)) kernels.push_back(plan.kernels[id]);
  }
  return kernels;
}

absl::StatusOr<LoadedCode> LoadCode(const l0::KernelCode& code, const l0::Kernel& kernel,
                                    llvm_backend::Jit& jit) {
  if (code.form == l0::KernelCode::Form::kObject) return LoadObject(code, kernel);
  const absl::StatusOr<l0::CodeClass> how_near = llvm_backend::CheckIr(code, kernel);
  if (!how_near.ok()) return how_near.status();
  if (absl::Status status = jit.CompileIr(code, kernel); !status.ok()) return status;
  return LoadedCode{jit.Find(kernel.name), *how_near};
}

bool CheckOwnCode(const l0::Plan& plan, support::Diagnostics& diagnostics) {
  if (plan.code.empty()) return true;
  auto jit = llvm_backend::Jit::Create({});
  bool sound = true;
  for (const l0::KernelCode& code : plan.code) {
    const l0::Kernel& kernel = plan.kernels[code.kernel];
    absl::Status status = jit.status();
    if (status.ok()) {
      const absl::StatusOr<LoadedCode> loaded = LoadCode(code, kernel, **jit);
      status = loaded.ok() ? TryCode(kernel, loaded->function, loaded->how_near) : loaded.status();
    }
    if (status.ok()) continue;
    sound = false;
    diagnostics.Error(absl::IsInvalidArgument(status) ? support::Kind::kConsistency
                      : absl::IsOutOfRange(status)    ? support::Kind::kSafety
                                                      : support::Kind::kEnvironment,
                      code.span,
                      absl::StrCat("the code of kernel '", kernel.name, "': ", status.message()));
  }
  return sound;
}

}  // namespace l3c::tools
