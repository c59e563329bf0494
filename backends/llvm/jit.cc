#include "backends/llvm/jit.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/llvm/kernel_cache.h"
#include "backends/llvm/kernel_compiler.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

namespace l3c::llvm_backend {
namespace {

namespace orc = llvm::orc;

absl::Status ToStatus(llvm::Error error, const std::string& doing) {
  return absl::InternalError(absl::StrCat(doing, ": ", llvm::toString(std::move(error))));
}

class OrcJit : public Jit {
 public:
  OrcJit(const JitOptions& options, std::unique_ptr<KernelCompiler> compiler)
      : options_(options), compiler_(std::move(compiler)) {}

  ~OrcJit() override {
    if (session_ == nullptr) return;
    if (llvm::Error error = session_->endSession()) llvm::consumeError(std::move(error));
  }

  absl::Status Initialize() {
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) return ToStatus(control.takeError(), "starting the JIT");
    session_ = std::make_unique<orc::ExecutionSession>(std::move(*control));
    linker_ = std::make_unique<orc::ObjectLinkingLayer>(
        *session_, session_->getExecutorProcessControl().getMemMgr());
    library_ = &session_->createBareJITDylib("kernels");
    // All that generated code may call.
    orc::SymbolMap symbols;
    const auto add = [&](const char* name, auto* function) {
      symbols[session_->intern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                         llvm::JITSymbolFlags::Exported};
    };
    // (kCallableByKernels)
    add("sin", static_cast<double (*)(double)>(std::sin));
    add("exp2", static_cast<double (*)(double)>(std::exp2));
    add("log2", static_cast<double (*)(double)>(std::log2));
    add("fmod", static_cast<double (*)(double, double)>(std::fmod));
    add("fmodf", static_cast<float (*)(float, float)>(std::fmod));
    if (llvm::Error error = library_->define(orc::absoluteSymbols(std::move(symbols)))) {
      return ToStatus(std::move(error), "defining the runtime symbols");
    }
    return absl::OkStatus();
  }

  absl::Status Compile(absl::Span<const l0::Kernel> kernels) override {
    std::set<std::string_view> names;
    for (const l0::Kernel& kernel : kernels) {
      if (entries_.contains(kernel.name) || !names.insert(kernel.name).second) {
        return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " exists already"));
      }
    }
    if (options_.cache != nullptr && !options_.keep_text) return CompileKept(kernels);
    absl::StatusOr<std::vector<CompiledModule>> modules = compiler_->Compile(kernels);
    if (!modules.ok()) return modules.status();
    for (const CompiledModule& module : *modules) {
      auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
          llvm::SmallVector<char, 0>(module.object.begin(), module.object.end()),
          kernels[module.first].name, /*RequiresNullTerminator=*/false);
      if (llvm::Error error = linker_->add(*library_, std::move(buffer))) {
        return ToStatus(std::move(error), "linking kernels");
      }
    }
    orc::SymbolLookupSet wanted;
    for (const l0::Kernel& kernel : kernels) wanted.add(session_->intern(kernel.name));
    auto found = session_->lookup({{library_, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}},
                                  std::move(wanted));
    if (!found) return ToStatus(found.takeError(), "linking kernels");
    for (const CompiledModule& module : *modules) {
      for (const l0::Kernel& kernel : kernels.subspan(module.first, module.count)) {
        const auto function = found->at(session_->intern(kernel.name)).getAddress();
        entries_[kernel.name] = {function.toPtr<KernelFn>(), module.ir, module.assembly};
      }
    }
    return absl::OkStatus();
  }

  absl::Status CompileIr(const l0::KernelCode& code, const l0::Kernel& kernel) override {
    if (entries_.contains(kernel.name)) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " exists already"));
    }
    absl::StatusOr<CompiledModule> module = compiler_->CompileIr(code, kernel, kernel.name);
    if (!module.ok()) return module.status();
    auto found = LinkAlone(module->object, {kernel.name});
    if (!found.ok()) return found.status();
    entries_[kernel.name] = {found->at(kernel.name), module->ir, module->assembly};
    return absl::OkStatus();
  }

  KernelFn Find(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second.function;
  }
  std::string Ir(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? "" : found->second.ir;
  }
  std::string Assembly(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? "" : found->second.assembly;
  }
  int vector_registers() const override { return compiler_->vector_registers(); }
  bool has_tiles() const override { return compiler_->has_tiles(); }
  int vector_bits() const override { return compiler_->vector_bits(); }

 private:
  struct Entry {
    KernelFn function = nullptr;
    std::string ir;
    std::string assembly;
  };

  // The same with the cache. An object may bring symbols that another one has as well, so each is
  // linked by itself.
  absl::Status CompileKept(absl::Span<const l0::Kernel> kernels) {
    const std::string target =
        absl::StrCat(LLVM_VERSION_STRING, " ", compiler_->features(), " ", compiler_->vector_bits(),
                     options_.contract ? " +" : " ");
    const auto compile =
        [this](absl::Span<const l0::Kernel> missing) -> absl::StatusOr<std::vector<KernelObject>> {
      absl::StatusOr<std::vector<CompiledModule>> modules = compiler_->Compile(missing);
      if (!modules.ok()) return modules.status();
      std::vector<KernelObject> objects;
      for (CompiledModule& module : *modules) {
        objects.push_back({module.first, module.count, std::move(module.object)});
      }
      return objects;
    };
    absl::StatusOr<LinkedKernels> linked =
        CompileWithCache(*options_.cache, target, kernels, compile);
    if (!linked.ok()) return linked.status();
    for (const LinkedKernels::Object& object : linked->objects) {
      std::set<std::string> symbols;
      for (size_t kernel : object.kernels) symbols.insert(linked->symbols[kernel]);
      auto found = LinkAlone(object.bytes, symbols);
      if (!found.ok()) return found.status();
      for (size_t kernel : object.kernels) {
        entries_[kernels[kernel].name].function = found->at(linked->symbols[kernel]);
      }
    }
    return absl::OkStatus();
  }

  // The functions of an object that sees nothing of the others.
  absl::StatusOr<std::map<std::string, KernelFn>> LinkAlone(absl::Span<const char> object,
                                                            const std::set<std::string>& symbols) {
    const std::string name = absl::StrCat("kernels-", libraries_++);
    orc::JITDylib& library = session_->createBareJITDylib(name);
    library.addToLinkOrder(*library_);
    auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
        llvm::SmallVector<char, 0>(object.begin(), object.end()), name,
        /*RequiresNullTerminator=*/false);
    if (llvm::Error error = linker_->add(library, std::move(buffer))) {
      return ToStatus(std::move(error), "linking kernels");
    }
    orc::SymbolLookupSet wanted;
    for (const std::string& symbol : symbols) wanted.add(session_->intern(symbol));
    auto found = session_->lookup({{&library, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}},
                                  std::move(wanted));
    if (!found) return ToStatus(found.takeError(), "linking kernels");
    std::map<std::string, KernelFn> functions;
    for (const std::string& symbol : symbols) {
      functions[symbol] = found->at(session_->intern(symbol)).getAddress().toPtr<KernelFn>();
    }
    return functions;
  }

  const JitOptions options_;
  const std::unique_ptr<KernelCompiler> compiler_;
  int libraries_ = 0;  // of the cache's objects
  std::unique_ptr<orc::ExecutionSession> session_;
  std::unique_ptr<orc::ObjectLinkingLayer> linker_;
  orc::JITDylib* library_ = nullptr;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Jit>> Jit::Create(const JitOptions& options) {
  absl::StatusOr<std::unique_ptr<KernelCompiler>> compiler = KernelCompiler::Create(
      {options.threads, options.keep_text, options.contract, options.features});
  if (!compiler.ok()) return compiler.status();
  auto jit = std::make_unique<OrcJit>(options, *std::move(compiler));
  absl::Status status = jit->Initialize();
  if (!status.ok()) return status;
  return std::unique_ptr<Jit>(std::move(jit));
}

}  // namespace l3c::llvm_backend
