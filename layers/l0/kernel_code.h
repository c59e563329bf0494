// Code that runs in place of a kernel's UOps.
//
//   kernel dense(x: in f32 [128, 784], w: in f32 [784, 256], y: out f32 [128, 256]) { … }
//   code dense : llvm fast { "define void @fast(ptr %buffers, i64 %first, i64 %last) {" … }
//   code dense : object fast at "/home/me/fast.so" of "8f00b204e9800998"
//
// The UOps stay: they say what the code computes, what it reads and what it writes, and are what
// the verifier, the interpreter and the cost model look at. The code is called as
//
//   void SYMBOL(void* const* buffers, int64_t first, int64_t last)
//
// `buffers`: one for each parameter, in order. It computes blocks [first, last) of the kernel's
// grid (NumBlocks; one without a grid), from any thread, and gives the same bits for any partition.
// It says what it is for in a constant beside it, `char SYMBOL_signature[]`:
//
//   (in f32 [128, 784], in f32 [784, 256], out f32 [128, 256]) reassoc
//
// the parameters, and how near to the UOps it comes: exact (their bits), reassoc or fast (the
// classes of --numerics).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "layers/l0/kernel.h"
#include "layers/support/source.h"

namespace l3c::l0 {

struct KernelCode {
  enum class Form : uint8_t {
    kLlvm,    // a module of LLVM's IR, as text
    kObject,  // a shared object with C linkage; it stays where it is
  };
  uint32_t kernel = 0;  // id in the plan
  Form form = Form::kLlvm;
  std::string symbol;
  std::string text;     // kLlvm
  std::string path;     // kObject: absolute
  uint64_t digest = 0;  // kObject: of its bytes, see DigestOfFile
  support::Span span;
};

enum class CodeClass : uint8_t { kExact, kReassoc, kFast };

// "in f32 [128, 784]"
std::string DescribeParam(const Param& param);

// The signature that code of the kernel has, less its class: "(in f32 [8], out f32 [1])".
std::string SignatureOf(const Kernel& kernel);

// The class of code whose signature is `signature`. Nothing, and why in `fault`, when it is not
// that of the kernel.
std::optional<CodeClass> ReadSignature(std::string_view signature, const Kernel& kernel,
                                       std::string& fault);

// FNV-1a of the bytes of a file; nothing when it cannot be read.
std::optional<uint64_t> DigestOfFile(const std::string& path);

}  // namespace l3c::l0
