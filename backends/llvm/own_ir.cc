#include "backends/llvm/own_ir.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"

namespace l3c::llvm_backend {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool IsCallable(llvm::StringRef name) {
  return std::any_of(std::begin(kCallableByKernels), std::end(kCallableByKernels),
                     [&](const char* known) { return name == known; });
}

std::string TextOf(const llvm::Type& type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

absl::Status CheckFunction(const llvm::Module& module, const std::string& symbol) {
  const llvm::Function* function = module.getFunction(symbol);
  if (function == nullptr || function->isDeclaration()) {
    std::string defined;
    for (const llvm::Function& f : module) {
      if (!f.isDeclaration()) defined += (defined.empty() ? "" : ", ") + f.getName().str();
    }
    return Wrong("it defines no function '", symbol, "'",
                 defined.empty() ? "" : absl::StrCat(" (it has ", defined, ")"));
  }
  const llvm::FunctionType& type = *function->getFunctionType();
  const bool fits = type.getReturnType()->isVoidTy() && !type.isVarArg() &&
                    type.getNumParams() == 3 && type.getParamType(0)->isPointerTy() &&
                    type.getParamType(1)->isIntegerTy(64) && type.getParamType(2)->isIntegerTy(64);
  if (fits && function->getCallingConv() == llvm::CallingConv::C) return absl::OkStatus();
  return Wrong("function '", symbol, "' is ", TextOf(type),
               "; the code of a kernel is void (ptr, i64, i64): buffers, first block, end");
}

absl::Status CheckContents(const llvm::Module& module) {
  if (!module.getModuleInlineAsm().empty()) return Wrong("it has inline assembly");
  if (!module.aliases().empty() || !module.ifuncs().empty()) return Wrong("it has aliases");
  for (const llvm::GlobalVariable& global : module.globals()) {
    const std::string name = global.getName().str();
    if (!global.hasInitializer()) return Wrong("it refers to '", name, "' outside of it");
    if (!global.isConstant() || global.isThreadLocal()) {
      return Wrong("'", name, "' can be written: a kernel has no state of its own");
    }
    if (global.getInitializer()->needsRelocation()) return Wrong("'", name, "' holds an address");
  }
  for (const llvm::Function& function : module) {
    const llvm::StringRef name = function.getName();
    if (name.starts_with("llvm.x86.")) {
      return Wrong("it calls '", name.str(), "', which is one target's: vector types say the same");
    }
    if (function.isDeclaration()) {
      if (function.isIntrinsic() || IsCallable(name)) continue;
      return Wrong("it declares '", name.str(), "', which it cannot call here");
    }
    if (function.hasPersonalityFn()) return Wrong("'", name.str(), "' handles exceptions");
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call != nullptr && call->isInlineAsm()) return Wrong("it has inline assembly");
      if (call != nullptr && call->getCalledFunction() == nullptr) {
        return Wrong("'", name.str(), "' calls through a pointer");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<l0::CodeClass> ClassOf(const llvm::Module& module, const l0::KernelCode& code,
                                      const l0::Kernel& kernel) {
  const std::string name = code.symbol + "_signature";
  const llvm::GlobalVariable* global = module.getNamedGlobal(name);
  const auto* text = global == nullptr || !global->hasInitializer()
                         ? nullptr
                         : llvm::dyn_cast<llvm::ConstantDataArray>(global->getInitializer());
  if (text == nullptr || !text->isCString()) {
    return Wrong("it has no constant '", name, "' that says what it is for: '",
                 l0::SignatureOf(kernel), " exact', or reassoc, or fast");
  }
  std::string fault;
  const auto found = l0::ReadSignature(text->getAsCString().str(), kernel, fault);
  if (!found) return Wrong(fault);
  return *found;
}

absl::StatusOr<std::unique_ptr<llvm::Module>> ReadModule(const l0::KernelCode& code,
                                                         const l0::Kernel& kernel,
                                                         llvm::LLVMContext& context,
                                                         l0::CodeClass& how_near) {
  llvm::SMDiagnostic fault;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(code.text, fault, context);
  if (module == nullptr) {
    return Wrong("line ", fault.getLineNo(), ", column ", fault.getColumnNo() + 1, ": ",
                 fault.getMessage().str());
  }
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module, &stream)) {
    return Wrong("LLVM finds: ", broken.substr(0, broken.find('\n')));
  }
  const llvm::Triple& triple = module->getTargetTriple();
  if (!triple.empty() && triple.getArch() != llvm::Triple::x86_64 &&
      triple.getArch() != llvm::Triple::UnknownArch) {
    return Wrong("it is for ", triple.str(), ", not for x86-64");
  }
  if (absl::Status status = CheckFunction(*module, code.symbol); !status.ok()) return status;
  if (absl::Status status = CheckContents(*module); !status.ok()) return status;
  absl::StatusOr<l0::CodeClass> found = ClassOf(*module, code, kernel);
  if (!found.ok()) return found.status();
  how_near = *found;
  return module;
}

// Copies and fills become loops: there is no function to call for them.
void ExpandMemory(llvm::Function& function, llvm::TargetMachine& machine) {
  std::vector<llvm::MemIntrinsic*> found;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) found.push_back(memory);
  }
  const llvm::TargetTransformInfo target = machine.getTargetTransformInfo(function);
  for (llvm::MemIntrinsic* memory : found) {
    if (auto* copy = llvm::dyn_cast<llvm::MemCpyInst>(memory)) {
      llvm::expandMemCpyAsLoop(copy, target);
    } else if (auto* move = llvm::dyn_cast<llvm::MemMoveInst>(memory)) {
      llvm::expandMemMoveAsLoop(move, target);
    } else if (auto* fill = llvm::dyn_cast<llvm::MemSetInst>(memory)) {
      llvm::expandMemSetAsLoop(fill);
    } else {
      continue;
    }
    memory->eraseFromParent();
  }
}

}  // namespace

absl::StatusOr<l0::CodeClass> CheckIr(const l0::KernelCode& code, const l0::Kernel& kernel) {
  llvm::LLVMContext context;
  l0::CodeClass how_near = l0::CodeClass::kExact;
  const auto module = ReadModule(code, kernel, context, how_near);
  if (!module.ok()) return module.status();
  return how_near;
}

absl::StatusOr<std::unique_ptr<llvm::Module>> PrepareIr(const l0::KernelCode& code,
                                                        const l0::Kernel& kernel,
                                                        const std::string& name,
                                                        llvm::TargetMachine& machine,
                                                        llvm::LLVMContext& context) {
  l0::CodeClass how_near = l0::CodeClass::kExact;
  auto read = ReadModule(code, kernel, context, how_near);
  if (!read.ok()) return read.status();
  std::unique_ptr<llvm::Module> module = *std::move(read);
  llvm::StripDebugInfo(*module);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple());
  llvm::Function* entry = module->getFunction(code.symbol);
  if (llvm::GlobalValue* taken = module->getNamedValue(name); taken != nullptr && taken != entry) {
    taken->setName(name + ".other");
  }
  for (llvm::GlobalObject& object : module->global_objects()) {
    object.setSection("");
    object.setComdat(nullptr);
    if (object.isDeclaration()) continue;
    object.setVisibility(llvm::GlobalValue::DefaultVisibility);
    object.setLinkage(&object == entry ? llvm::GlobalValue::ExternalLinkage
                                       : llvm::GlobalValue::InternalLinkage);
  }
  entry->setName(name);
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu"}) {
      function.removeFnAttr(attribute);
    }
    function.removeFnAttr(llvm::Attribute::UWTable);
    function.setDoesNotThrow();
    function.addFnAttr("no-jump-tables", "true");
    ExpandMemory(function, machine);
  }
  return module;
}

absl::Status CheckCalls(absl::Span<const char> object) {
  const llvm::MemoryBufferRef buffer({object.data(), object.size()}, "kernel");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return absl::InternalError(llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) return absl::InternalError("an object without symbols");
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) == 0 || name->empty()) continue;
    if (IsCallable(*name)) continue;
    return Wrong("on this CPU it needs '", name->str(), "', which it cannot call here");
  }
  return absl::OkStatus();
}

}  // namespace l3c::llvm_backend
