// Random kernels under random schedules, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_verify.h"
#include "layers/l0/staging.h"
#include "tests/backends/llvm/kernel_runner.h"
#include "tests/backends/random_kernel.h"

namespace l3c {
namespace {

using l0::AxisSet;
using l0::Kernel;
using l0::Uop;
using l0::UOp;
using l0::UopId;
using tensor::DType;
using Generator = testing::RandomKernel;

bool IsLegal(const Kernel& kernel) {
  support::Diagnostics diagnostics;
  return l0::VerifyKernel(kernel, diagnostics);
}

TEST(RandomKernels, FloatsAgree) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 160; ++seed) {
    const Kernel kernel = Generator(seed).Float();
    if (!IsLegal(kernel)) continue;
    SCOPED_TRACE(seed);
    ++ran;
    testing::ExpectAgreement(kernel, 1e-5, seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(ran, 120);
}

TEST(RandomKernels, IntegersAreEqual) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 90; ++seed) {
    const DType dtypes[] = {DType::kI32, DType::kU8,  DType::kI64,
                            DType::kU32, DType::kU64, DType::kBool};
    const Kernel kernel = Generator(seed).Integer(dtypes[seed % 6]);
    if (!IsLegal(kernel)) continue;
    SCOPED_TRACE(seed);
    ++ran;
    testing::ExpectAgreement(kernel, 0, seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(ran, 70);
}

// Whatever may be staged is, half of the time.
TEST(RandomKernels, StagedValuesAgree) {
  int staged = 0;
  for (uint32_t seed = 3000; seed < 3030; ++seed) {
    Kernel kernel = Generator(seed).Float();
    if (!IsLegal(kernel)) continue;
    std::mt19937 random(seed);
    const std::vector<AxisSet> free = l0::FreeAxes(kernel);
    const int before = staged;
    for (UopId id = 0; id < kernel.uops.size(); ++id) {
      Uop& uop = kernel.uops[id];
      if (uop.op == UOp::kStore || random() % 2 == 0) continue;
      uop.staged = l0::StagingOf(kernel, id, free).has_value();
      staged += uop.staged ? 1 : 0;
    }
    if (staged == before || !IsLegal(kernel)) continue;
    SCOPED_TRACE(seed);
    testing::ExpectAgreement(kernel, 1e-5, seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(staged, 30);
}

TEST(RandomKernels, EveryCandidateScheduleAgrees) {
  for (uint32_t seed = 1000; seed < 1020; ++seed) {
    const Kernel kernel = Generator(seed).Float();
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel)) {
      SCOPED_TRACE(schedule.name);
      testing::ExpectAgreement(l0::ApplySchedule(kernel, schedule), 1e-5, seed);
      if (HasFailure()) return;
    }
  }
}

// Narrow machines run the same kernels: vectors are split, products rounded before they are added.
TEST(RandomKernels, SmallerInstructionSetsAgree) {
  for (const char* features : {"+sse2", "+sse2,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma"}) {
    for (uint32_t seed = 2000; seed < 2012; ++seed) {
      const Kernel kernel = Generator(seed).Float();
      if (!IsLegal(kernel)) continue;
      SCOPED_TRACE(seed);
      testing::ExpectAgreement(kernel, 1e-5, seed, {.features = features});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace l3c
