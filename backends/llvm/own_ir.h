// Code of a kernel that is given as a module of LLVM's IR (layers/l0/kernel_code.h): whether it may
// be compiled, and the module to compile.
//
// A module holds functions and constants. It calls nothing but its own functions, what LLVM turns
// into instructions and the functions of kCallableByKernels; it has no inline assembly, no
// intrinsic of a target, no global that can be written and no constant that holds an address. Debug
// information and what it says of the CPU are dropped: kernels are compiled for the CPU that is
// asked for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "layers/l0/kernel_code.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace l3c::llvm_backend {

// Functions that generated code may call.
inline constexpr const char* kCallableByKernels[] = {"sin", "exp2", "log2", "fmod", "fmodf"};

// How near the code says that it comes to the kernel. InvalidArgument says what is wrong with it.
absl::StatusOr<l0::CodeClass> CheckIr(const l0::KernelCode& code, const l0::Kernel& kernel);

// The module with one function that is visible, `name`. InvalidArgument as above.
absl::StatusOr<std::unique_ptr<llvm::Module>> PrepareIr(const l0::KernelCode& code,
                                                        const l0::Kernel& kernel,
                                                        const std::string& name,
                                                        llvm::TargetMachine& machine,
                                                        llvm::LLVMContext& context);

// InvalidArgument when the object that such a module became needs a function that is not there.
absl::Status CheckCalls(absl::Span<const char> object);

}  // namespace l3c::llvm_backend
