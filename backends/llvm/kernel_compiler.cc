#include "backends/llvm/kernel_compiler.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/llvm/emit_control.h"
#include "backends/llvm/emit_kernel.h"
#include "backends/llvm/own_ir.h"
#include "layers/l0/linearize.h"
#include "layers/support/tile_permission.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/ScopedNoAliasAA.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace l3c::llvm_backend {
namespace {

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
      const bool tiles = entry.first().starts_with("amx-");
      if (!entry.second || (tiles && !support::TilesPermitted())) continue;
      names.push_back(absl::StrCat("+", entry.first().str()));
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
  target.transcendental.has_bf16 = avx512 && has("avx512bf16");
  target.transcendental.has_tiles = avx512 && has("amx-tile") && has("amx-bf16");
  return target;
}

// Kernels compiled as one module share the cost of setting LLVM's passes up, which is most of the
// cost of a small kernel. Functions do not affect one another's code.
constexpr size_t kKernelsPerModule = 4;

// Compiles modules one after another; one to a thread.
class ModuleCompiler {
 public:
  static std::unique_ptr<ModuleCompiler> Create(const Target& target, std::string* error) {
    const llvm::Triple triple(llvm::sys::getProcessTriple());
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, *error);
    if (backend == nullptr) return nullptr;
    auto compiler = std::make_unique<ModuleCompiler>();
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    // The small code model, as for any executable: code and its constants lie near each other, and
    // a function far away is reached through a table. (LLVM's own choice for code made at run time
    // is the large one, whose constants take an instruction more.)
    compiler->machine_.reset(backend->createTargetMachine(
        triple, "x86-64", target.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
        llvm::CodeGenOptLevel::Default, /*JIT=*/true));
    compiler->target_ = target;
    return compiler;
  }

  CompiledModule CompileControl(const l0::ControlUnit& unit, const std::string& name, bool scopes) {
    llvm::LLVMContext context;
    llvm::Module module(name, context);
    module.setDataLayout(machine_->createDataLayout());
    module.setTargetTriple(machine_->getTargetTriple());
    EmitControl(unit, name, scopes, module);
    llvm::legacy::PassManager passes;
    passes.add(llvm::createBasicAAWrapperPass());
    passes.add(llvm::createScopedNoAliasAAWrapperPass());
    passes.add(llvm::createEarlyCSEPass());
    passes.add(llvm::createLICMPass());
    passes.run(module);
    CompiledModule out;
    llvm::raw_string_ostream stream(out.ir);
    module.print(stream, nullptr);
    const auto text = EmitFile(*llvm::CloneModule(module), llvm::CodeGenFileType::AssemblyFile);
    out.assembly.assign(text.begin(), text.end());
    const auto object = EmitFile(module, llvm::CodeGenFileType::ObjectFile);
    out.object.assign(object.begin(), object.end());
    return out;
  }

  absl::StatusOr<CompiledModule> CompileIr(const l0::KernelCode& code, const l0::Kernel& kernel,
                                           const std::string& name, bool text) {
    llvm::LLVMContext context;
    auto module = PrepareIr(code, kernel, name, *machine_, context);
    if (!module.ok()) return module.status();
    CompiledModule out;
    out.count = 1;
    Finish(**module, text, out);
    if (absl::Status status = CheckCalls(out.object); !status.ok()) return status;
    return out;
  }

  absl::Status Compile(absl::Span<const l0::Kernel> kernels, const CompilerOptions& options,
                       CompiledModule& out) {
    llvm::LLVMContext context;
    llvm::Module module(kernels[0].name, context);
    module.setDataLayout(machine_->createDataLayout());
    module.setTargetTriple(machine_->getTargetTriple());
    for (const l0::Kernel& kernel : kernels) {
      auto linear = l0::Linearize(kernel, {.contract = options.contract});
      if (!linear.ok()) return linear.status();
      EmitKernel(*linear, target_.transcendental, module);
    }
    Finish(module, options.text, out);
    return absl::OkStatus();
  }

 private:
  // To machine code, for this target.
  void Finish(llvm::Module& module, bool text, CompiledModule& out) {
    const std::string width = std::to_string(target_.vector_bits);
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      function.addFnAttr("prefer-vector-width", width);
      function.addFnAttr("min-legal-vector-width", width);
    }
    if (text) {
      llvm::raw_string_ostream stream(out.ir);
      module.print(stream, nullptr);
      const auto assembly =
          EmitFile(*llvm::CloneModule(module), llvm::CodeGenFileType::AssemblyFile);
      out.assembly.assign(assembly.begin(), assembly.end());
    }
    const auto object = EmitFile(module, llvm::CodeGenFileType::ObjectFile);
    out.object.assign(object.begin(), object.end());
  }

  llvm::SmallVector<char, 0> EmitFile(llvm::Module& module, llvm::CodeGenFileType type) {
    llvm::SmallVector<char, 0> out;
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    machine_->addPassesToEmitFile(passes, stream, nullptr, type);
    passes.run(module);
    return out;
  }

  std::unique_ptr<llvm::TargetMachine> machine_;
  Target target_;
};

class LlvmKernelCompiler : public KernelCompiler {
 public:
  LlvmKernelCompiler(const CompilerOptions& options, Target target)
      : options_(options), target_(std::move(target)) {}

  absl::StatusOr<std::vector<CompiledModule>> Compile(
      absl::Span<const l0::Kernel> kernels) override {
    // The text of a kernel is that of its module.
    const size_t per_module = options_.text ? 1 : kKernelsPerModule;
    std::vector<CompiledModule> modules((kernels.size() + per_module - 1) / per_module);
    std::vector<absl::Status> statuses(modules.size());
    const size_t threads = std::clamp<size_t>(static_cast<size_t>(std::max(options_.threads, 1)), 1,
                                              std::max<size_t>(modules.size(), 1));
    if (absl::Status status = EnsureCompilers(threads); !status.ok()) return status;
    std::atomic<size_t> next = 0;
    const auto work = [&](size_t thread) {
      for (size_t i = next++; i < modules.size(); i = next++) {
        const auto part = kernels.subspan(i * per_module, per_module);
        modules[i].first = i * per_module;
        modules[i].count = part.size();
        statuses[i] = compilers_[thread]->Compile(part, options_, modules[i]);
      }
    };
    std::vector<std::thread> workers;
    for (size_t thread = 1; thread < threads; ++thread) workers.emplace_back(work, thread);
    work(0);
    for (std::thread& worker : workers) worker.join();
    for (const absl::Status& status : statuses) {
      if (!status.ok()) return status;
    }
    return modules;
  }

  absl::StatusOr<CompiledModule> CompileIr(const l0::KernelCode& code, const l0::Kernel& kernel,
                                           const std::string& name) override {
    if (absl::Status status = EnsureCompilers(1); !status.ok()) return status;
    return compilers_.front()->CompileIr(code, kernel, name, options_.text);
  }

  absl::StatusOr<CompiledModule> CompileControl(const l0::ControlUnit& unit,
                                                const std::string& name, bool scopes) override {
    if (absl::Status status = EnsureCompilers(1); !status.ok()) return status;
    return compilers_.front()->CompileControl(unit, name, scopes);
  }

  const std::string& features() const override { return target_.features; }
  int vector_registers() const override { return target_.vector_registers; }
  int vector_bits() const override { return target_.vector_bits; }
  bool has_tiles() const override { return target_.transcendental.has_tiles; }

 private:
  absl::Status EnsureCompilers(size_t count) {
    while (compilers_.size() < count) {
      std::string error;
      auto compiler = ModuleCompiler::Create(target_, &error);
      if (compiler == nullptr) return absl::InternalError(error);
      compilers_.push_back(std::move(compiler));
    }
    return absl::OkStatus();
  }

  const CompilerOptions options_;
  const Target target_;
  std::vector<std::unique_ptr<ModuleCompiler>> compilers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelCompiler>> KernelCompiler::Create(
    const CompilerOptions& options) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  return std::make_unique<LlvmKernelCompiler>(options, DescribeTarget(options.features));
}

}  // namespace l3c::llvm_backend
