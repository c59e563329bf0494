// Runs kernels as PTX and as the interpreter has them, and compares.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/ptx/emit_ptx.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/uop_interpreter.h"
#include "tests/backends/kernel_buffers.h"
#include "tests/backends/ptx/ptx_machine.h"

namespace l3c::testing {

inline const l0::ScheduleTarget kGpu{.lanes = 32, .gpu = "sm_80"};

// Of kernel and PTX text; the buffers are changed. Outputs count as unwritten.
inline std::optional<std::string> RunText(const l0::Kernel& kernel, const std::string& text,
                                          Buffers& buffers, const PtxLimits& limits = {}) {
  const PtxModule module = ParsePtx(text);
  std::vector<PtxBuffer> memory;
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    const size_t bytes = buffers.Count(p) * tensor::SizeOf(kernel.params[p].dtype);
    memory.push_back({static_cast<std::byte*>(buffers.Pointers()[p]), bytes,
                      kernel.params[p].access != l0::Access::kOut});
  }
  return RunPtx(module, memory, kernel.launch->grid, limits);
}

inline std::string TextOf(const l0::Kernel& kernel, const ptx::EmitOptions& options = {}) {
  const absl::StatusOr<std::string> text = ptx::EmitPtx(kernel, options);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

// The PTX of a scheduled kernel computes what the kernel means, and no two threads meet.
inline void ExpectPtxAgrees(const l0::Kernel& kernel, double tolerance = 1e-5, uint32_t seed = 1,
                            const ptx::EmitOptions& options = {}) {
  SCOPED_TRACE(l0::PrintKernel(kernel));
  const std::string text = TextOf(kernel, options);
  if (text.empty()) return;
  Buffers expected(kernel, seed);
  Buffers found(kernel, seed);
  l0::Run(kernel, expected.Pointers().data(), 0, l0::NumBlocks(kernel));
  const std::optional<std::string> fault = RunText(kernel, text, found);
  ASSERT_FALSE(fault) << *fault << "\n" << text;
  found.ExpectGuards();
  expected.ExpectNear(found, tolerance);
}

// Under every schedule that there is for a GPU.
inline void ExpectSchedulesAgree(const l0::Kernel& kernel, double tolerance = 1e-5,
                                 uint32_t seed = 1) {
  for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, kGpu)) {
    SCOPED_TRACE(schedule.name);
    ExpectPtxAgrees(l0::ApplySchedule(kernel, schedule), tolerance, seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace l3c::testing
