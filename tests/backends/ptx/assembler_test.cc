// What ptxas says of every kind of kernel, for every target.
#include <iostream>

#include "layers/l0/kernel_verify.h"
#include "tests/backends/ptx/assembler.h"
#include "tests/backends/ptx/example_kernels.h"
#include "tests/backends/ptx/ptx_runner.h"
#include "tests/backends/random_kernel.h"

namespace l3c {
namespace {

class Ptxas : public ::testing::Test {
 protected:
  void SetUp() override {
    ptxas_ = testing::FindPtxas();
    if (!ptxas_) GTEST_SKIP() << "there is no ptxas on PATH or in CUDA_HOME";
  }

  testing::Assembled Take(const l0::Kernel& kernel, std::string_view target) const {
    const std::string text = testing::TextOf(kernel, {.target = target});
    testing::Assembled assembled = testing::Assemble(*ptxas_, text, target);
    EXPECT_EQ(assembled.errors, "") << text;
    return assembled;
  }

  std::optional<std::string> ptxas_;
};

TEST_F(Ptxas, TakesTheExamplesWithoutSpills) {
  for (const std::string& text : testing::ExampleKernels()) {
    const l0::Kernel kernel = testing::ParseOne(text);
    const l0::Schedule schedule = l0::CandidateSchedules(kernel, testing::kGpu).front();
    std::cout << kernel.name << ", " << schedule.name << ": registers";
    for (const std::string_view target : ptx::Targets()) {
      SCOPED_TRACE(target);
      const testing::Assembled assembled = Take(l0::ApplySchedule(kernel, schedule), target);
      EXPECT_EQ(assembled.spilled, 0);
      EXPECT_GT(assembled.registers, 0);
      std::cout << " " << assembled.registers;
    }
    std::cout << "\n";
  }
}

TEST_F(Ptxas, TakesRandomKernels) {
  using tensor::DType;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const DType dtypes[] = {DType::kI32, DType::kU8,  DType::kI64,
                            DType::kU32, DType::kU64, DType::kBool};
    const l0::Kernel kernel = seed < 6 ? testing::RandomKernel(seed).Float()
                                       : testing::RandomKernel(seed).Integer(dtypes[seed % 6]);
    support::Diagnostics diagnostics;
    if (!l0::VerifyKernel(kernel, diagnostics)) continue;
    const auto schedules = l0::CandidateSchedules(kernel, testing::kGpu);
    Take(l0::ApplySchedule(kernel, schedules.front()), "sm_80");
    Take(l0::ApplySchedule(kernel, schedules.back()), "sm_100");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace l3c
