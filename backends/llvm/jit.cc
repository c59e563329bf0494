#include "backends/llvm/jit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/llvm/emit_kernel.h"
#include "backends/llvm/kernel_cache.h"
#include "layers/l0/linearize.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace l3c::llvm_backend {
namespace {

namespace orc = llvm::orc;

absl::Status ToStatus(llvm::Error error, const std::string& doing) {
  return absl::InternalError(absl::StrCat(doing, ": ", llvm::toString(std::move(error))));
}

struct Target {
  std::string features;
  int vector_bits = 128;
  int vector_registers = 16;
  TranscendentalTarget transcendental;
};

Target DescribeTarget(const std::string& features) {
  Target target;
  target.features = features;
  if (features.empty()) {
    std::vector<std::string> names;
    for (const auto& entry : llvm::sys::getHostCPUFeatures()) {
      if (entry.second) names.push_back(absl::StrCat("+", entry.first().str()));
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (!target.features.empty()) target.features += ",";
      target.features += name;
    }
  }
  const std::string padded = absl::StrCat(",", target.features, ",");
  const auto has = [&](const char* name) {
    return padded.find(absl::StrCat(",+", name, ",")) != std::string::npos;
  };
  const bool avx512 = has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw");
  target.vector_bits = avx512 ? 512 : has("avx") ? 256 : 128;
  target.vector_registers = avx512 ? 32 : 16;
  target.transcendental.has_fma = has("fma");
  target.transcendental.has_scalef = avx512;
  return target;
}

// Kernels compiled as one module share the cost of setting LLVM's passes up, which is most of the
// cost of a small kernel. Functions do not affect one another's code.
constexpr size_t kKernelsPerModule = 4;

// What the kernels of one module became.
struct Compiled {
  absl::Status status;
  llvm::SmallVector<char, 0> object;
  std::string ir;
  std::string assembly;
};

// Compiles kernels one after another; one to a thread.
class Compiler {
 public:
  static std::unique_ptr<Compiler> Create(const Target& target, std::string* error) {
    const llvm::Triple triple(llvm::sys::getProcessTriple());
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, *error);
    if (backend == nullptr) return nullptr;
    auto compiler = std::make_unique<Compiler>();
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    compiler->machine_.reset(
        backend->createTargetMachine(triple, "x86-64", target.features, options, llvm::Reloc::PIC_,
                                     std::nullopt, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
    compiler->target_ = target;
    return compiler;
  }

  void Compile(absl::Span<const l0::Kernel> kernels, const JitOptions& options, Compiled& out) {
    llvm::LLVMContext context;
    llvm::Module module(kernels[0].name, context);
    module.setDataLayout(machine_->createDataLayout());
    module.setTargetTriple(machine_->getTargetTriple());
    for (const l0::Kernel& kernel : kernels) {
      auto linear = l0::Linearize(kernel, {.contract = options.contract});
      if (!linear.ok()) {
        out.status = linear.status();
        return;
      }
      EmitKernel(*linear, target_.transcendental, module);
    }
    const std::string width = std::to_string(target_.vector_bits);
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      function.addFnAttr("prefer-vector-width", width);
      function.addFnAttr("min-legal-vector-width", width);
    }
    if (options.keep_text) {
      llvm::raw_string_ostream stream(out.ir);
      module.print(stream, nullptr);
      llvm::SmallVector<char, 0> text;
      EmitFile(*llvm::CloneModule(module), llvm::CodeGenFileType::AssemblyFile, text);
      out.assembly.assign(text.begin(), text.end());
    }
    EmitFile(module, llvm::CodeGenFileType::ObjectFile, out.object);
  }

 private:
  void EmitFile(llvm::Module& module, llvm::CodeGenFileType type, llvm::SmallVector<char, 0>& out) {
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    machine_->addPassesToEmitFile(passes, stream, nullptr, type);
    passes.run(module);
  }

  std::unique_ptr<llvm::TargetMachine> machine_;
  Target target_;
};

class OrcJit : public Jit {
 public:
  OrcJit(const JitOptions& options, Target target)
      : options_(options), target_(std::move(target)) {}

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
    // The text of a kernel is that of its module.
    const size_t per_module = options_.keep_text ? 1 : kKernelsPerModule;
    absl::StatusOr<std::vector<Compiled>> modules = CompileModules(kernels, per_module);
    if (!modules.ok()) return modules.status();
    std::vector<Compiled>& compiled = *modules;
    for (size_t i = 0; i < compiled.size(); ++i) {
      auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
          std::move(compiled[i].object), kernels[i * per_module].name,
          /*RequiresNullTerminator=*/false);
      if (llvm::Error error = linker_->add(*library_, std::move(buffer))) {
        return ToStatus(std::move(error), "linking kernels");
      }
    }
    orc::SymbolLookupSet wanted;
    for (const l0::Kernel& kernel : kernels) wanted.add(session_->intern(kernel.name));
    auto found = session_->lookup({{library_, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}},
                                  std::move(wanted));
    if (!found) return ToStatus(found.takeError(), "linking kernels");
    for (size_t i = 0; i < kernels.size(); ++i) {
      Entry& entry = entries_[kernels[i].name];
      entry.function = found->at(session_->intern(kernels[i].name)).getAddress().toPtr<KernelFn>();
      entry.ir = compiled[i / per_module].ir;
      entry.assembly = compiled[i / per_module].assembly;
    }
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
  int vector_registers() const override { return target_.vector_registers; }
  int vector_bits() const override { return target_.vector_bits; }

 private:
  struct Entry {
    KernelFn function = nullptr;
    std::string ir;
    std::string assembly;
  };

  // Each `per_module` kernels become a module.
  absl::StatusOr<std::vector<Compiled>> CompileModules(absl::Span<const l0::Kernel> kernels,
                                                       size_t per_module) {
    std::vector<Compiled> compiled((kernels.size() + per_module - 1) / per_module);
    const size_t threads = std::clamp<size_t>(static_cast<size_t>(std::max(options_.threads, 1)), 1,
                                              std::max<size_t>(compiled.size(), 1));
    while (compilers_.size() < threads) {
      std::string error;
      auto compiler = Compiler::Create(target_, &error);
      if (compiler == nullptr) return absl::InternalError(error);
      compilers_.push_back(std::move(compiler));
    }
    std::atomic<size_t> next = 0;
    const auto work = [&](size_t thread) {
      for (size_t i = next++; i < compiled.size(); i = next++) {
        compilers_[thread]->Compile(kernels.subspan(i * per_module, per_module), options_,
                                    compiled[i]);
      }
    };
    std::vector<std::thread> workers;
    for (size_t thread = 1; thread < threads; ++thread) workers.emplace_back(work, thread);
    work(0);
    for (std::thread& worker : workers) worker.join();

    for (const Compiled& module : compiled) {
      if (!module.status.ok()) return module.status;
    }
    return compiled;
  }

  // The same with the cache. An object may bring symbols that another one has as well, so each is
  // linked by itself.
  absl::Status CompileKept(absl::Span<const l0::Kernel> kernels) {
    const std::string target = absl::StrCat(LLVM_VERSION_STRING, " ", target_.features, " ",
                                            target_.vector_bits, options_.contract ? " +" : " ");
    const auto compile =
        [this](absl::Span<const l0::Kernel> missing) -> absl::StatusOr<std::vector<KernelObject>> {
      absl::StatusOr<std::vector<Compiled>> modules = CompileModules(missing, kKernelsPerModule);
      if (!modules.ok()) return modules.status();
      std::vector<KernelObject> objects;
      for (size_t i = 0; i < modules->size(); ++i) {
        const auto& object = (*modules)[i].object;
        const size_t first = i * kKernelsPerModule;
        objects.push_back({first,
                           std::min(kKernelsPerModule, missing.size() - first),
                           {object.begin(), object.end()}});
      }
      return objects;
    };
    absl::StatusOr<LinkedKernels> linked =
        CompileWithCache(*options_.cache, target, kernels, compile);
    if (!linked.ok()) return linked.status();
    for (const LinkedKernels::Object& object : linked->objects) {
      const std::string name = absl::StrCat("kernels-", libraries_++);
      orc::JITDylib& library = session_->createBareJITDylib(name);
      library.addToLinkOrder(*library_);
      auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
          llvm::SmallVector<char, 0>(object.bytes.begin(), object.bytes.end()), name,
          /*RequiresNullTerminator=*/false);
      if (llvm::Error error = linker_->add(library, std::move(buffer))) {
        return ToStatus(std::move(error), "linking kernels");
      }
      std::set<std::string> symbols;
      for (size_t kernel : object.kernels) symbols.insert(linked->symbols[kernel]);
      orc::SymbolLookupSet wanted;
      for (const std::string& symbol : symbols) wanted.add(session_->intern(symbol));
      auto found = session_->lookup(
          {{&library, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}}, std::move(wanted));
      if (!found) return ToStatus(found.takeError(), "linking kernels");
      for (size_t kernel : object.kernels) {
        const auto symbol = found->find(session_->intern(linked->symbols[kernel]));
        entries_[kernels[kernel].name].function = symbol->second.getAddress().toPtr<KernelFn>();
      }
    }
    return absl::OkStatus();
  }

  const JitOptions options_;
  const Target target_;
  int libraries_ = 0;  // of the cache's objects
  std::unique_ptr<orc::ExecutionSession> session_;
  std::unique_ptr<orc::ObjectLinkingLayer> linker_;
  orc::JITDylib* library_ = nullptr;
  std::vector<std::unique_ptr<Compiler>> compilers_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Jit>> Jit::Create(const JitOptions& options) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  auto jit = std::make_unique<OrcJit>(options, DescribeTarget(options.features));
  absl::Status status = jit->Initialize();
  if (!status.ok()) return status;
  return std::unique_ptr<Jit>(std::move(jit));
}

}  // namespace l3c::llvm_backend
