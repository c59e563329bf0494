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
#include "layers/l0/linearize.h"
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
    // The text of a kernel is that of its module.
    const size_t per_module = options_.keep_text ? 1 : kKernelsPerModule;
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

  const JitOptions options_;
  const Target target_;
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
