// Random kernels under every schedule for a GPU, against the interpreter.
#include "tests/backends/random_kernel.h"

#include "layers/l0/kernel_verify.h"
#include "tests/backends/ptx/ptx_runner.h"

namespace l3c {
namespace {

using tensor::DType;
using testing::RandomKernel;

bool IsLegal(const l0::Kernel& kernel) {
  support::Diagnostics diagnostics;
  return l0::VerifyKernel(kernel, diagnostics);
}

TEST(PtxRandomKernels, FloatsAgree) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const l0::Kernel kernel = RandomKernel(seed).Float();
    if (!IsLegal(kernel)) continue;
    SCOPED_TRACE(seed);
    ++ran;
    testing::ExpectSchedulesAgree(kernel, 1e-5, seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(ran, 16);
}

TEST(PtxRandomKernels, IntegersAreEqual) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const DType dtypes[] = {DType::kI32, DType::kU8,  DType::kI64,
                            DType::kU32, DType::kU64, DType::kBool};
    const l0::Kernel kernel = RandomKernel(seed).Integer(dtypes[seed % 6]);
    if (!IsLegal(kernel)) continue;
    SCOPED_TRACE(seed);
    ++ran;
    testing::ExpectSchedulesAgree(kernel, 0, seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(ran, 16);
}

}  // namespace
}  // namespace l3c
