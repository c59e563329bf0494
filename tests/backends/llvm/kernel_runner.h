// Shared by the tests of generated code: both ways to run a kernel.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/llvm/jit.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/uop_interpreter.h"
#include "tests/backends/kernel_buffers.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c::testing {

inline std::unique_ptr<llvm_backend::Jit> NewJit(llvm_backend::JitOptions options = {}) {
  auto jit = llvm_backend::Jit::Create(options);
  EXPECT_TRUE(jit.ok()) << jit.status();
  return jit.ok() ? std::move(*jit) : nullptr;
}

// Runs the kernel by interpreter and by JIT on the same data; results agree norm-wise, and the JIT
// gives the same bits whether the blocks run at once or one by one from the last.
inline void ExpectAgreement(const l0::Kernel& kernel, double tolerance = 1e-5, uint32_t seed = 1,
                            llvm_backend::JitOptions options = {}) {
  SCOPED_TRACE(l0::PrintKernel(kernel));
  options.threads = 1;
  const auto jit = NewJit(options);
  ASSERT_NE(jit, nullptr);
  const absl::Status status = jit->Compile({&kernel, 1});
  ASSERT_TRUE(status.ok()) << status;
  const llvm_backend::KernelFn run = jit->Find(kernel.name);
  ASSERT_NE(run, nullptr);
  const int64_t blocks = l0::NumBlocks(kernel);

  Buffers expected(kernel, seed);
  Buffers whole(kernel, seed);
  Buffers pieces(kernel, seed);
  l0::Run(kernel, expected.Pointers().data(), 0, blocks);
  run(whole.Pointers().data(), 0, blocks);
  for (int64_t block = blocks; block-- > 0;) run(pieces.Pointers().data(), block, block + 1);
  whole.ExpectGuards();
  expected.ExpectNear(whole, tolerance);
  EXPECT_TRUE(whole == pieces) << "the partition of the blocks changes the result";
}

}  // namespace l3c::testing
