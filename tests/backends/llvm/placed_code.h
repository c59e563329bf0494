// Kernels as a program of `l3c build` has them: objects of the kernel compiler, linked by
// backends/elf, at fixed places in memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/elf/object_linker.h"
#include "backends/llvm/jit.h"
#include "backends/llvm/kernel_compiler.h"

namespace l3c::testing {

class PlacedCode {
 public:
  PlacedCode() = default;
  PlacedCode(const PlacedCode&) = delete;
  PlacedCode& operator=(const PlacedCode&) = delete;
  ~PlacedCode() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  // Kernels that VerifyKernel accepts; once.
  absl::Status Compile(absl::Span<const l0::Kernel> kernels) {
    auto compiler = llvm_backend::KernelCompiler::Create({});
    if (!compiler.ok()) return compiler.status();
    const auto modules = (*compiler)->Compile(kernels);
    if (!modules.ok()) return modules.status();
    for (const auto& module : *modules) {
      if (absl::Status status = linker_.Add(module.object); !status.ok()) return status;
    }
    return Place();
  }

  llvm_backend::KernelFn Find(const std::string& name) const {
    const auto offset = linker_.OffsetOf(name);
    return offset.ok() ? reinterpret_cast<llvm_backend::KernelFn>(code_ + *offset) : nullptr;
  }

 private:
  static constexpr size_t kPage = 4096;

  static size_t Pages(size_t bytes) { return (bytes / kPage + 1) * kPage; }

  // A page of jumps to the C library, which relative calls do not reach; the code; its constants.
  absl::Status Place() {
    const size_t code_size = Pages(linker_.code_size());
    size_ = kPage + code_size + Pages(linker_.constants_size());
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return absl::ResourceExhaustedError("no memory for code");
    memory_ = static_cast<char*>(memory);
    code_ = memory_ + kPage;
    char* constants = code_ + code_size;
    std::map<std::string, uint64_t> outside;
    const auto add = [&](const char* name, auto* function) {
      char* slot = memory_ + 16 * outside.size();
      const auto target = reinterpret_cast<uintptr_t>(function);
      std::memcpy(slot, "\x48\xb8", 2);  // mov rax, target; jmp rax
      std::memcpy(slot + 2, &target, 8);
      std::memcpy(slot + 10, "\xff\xe0", 2);
      outside[name] = reinterpret_cast<uint64_t>(slot);
    };
    add("sin", static_cast<double (*)(double)>(std::sin));
    add("exp2", static_cast<double (*)(double)>(std::exp2));
    add("log2", static_cast<double (*)(double)>(std::log2));
    add("fmod", static_cast<double (*)(double, double)>(std::fmod));
    add("fmodf", static_cast<float (*)(float, float)>(std::fmod));
    const auto linked = linker_.Link(reinterpret_cast<uint64_t>(code_),
                                     reinterpret_cast<uint64_t>(constants), outside);
    if (!linked.ok()) return linked.status();
    std::memcpy(code_, linked->code.data(), linked->code.size());
    std::memcpy(constants, linked->constants.data(), linked->constants.size());
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) {
      return absl::PermissionDeniedError("code may not run");
    }
    return absl::OkStatus();
  }

  elf::ObjectLinker linker_;
  char* memory_ = nullptr;
  char* code_ = nullptr;
  size_t size_ = 0;
};

}  // namespace l3c::testing
