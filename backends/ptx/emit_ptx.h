// Kernels as PTX text, for NVIDIA GPUs.
//
//   kernel ──Linearize──► linear code of one thread     layers/l0/linearize.h
//          ──Select─────► instructions                  select.h
//          ──RemoveDead, NumberRegisters──► registers   registers.h
//          ──PrintModule──► text                        ptx_text.h
//
// An .entry of the kernel's name takes a pointer to global memory for each parameter, in order, and
// is launched with the grid and the block of the kernel's launch (layers/l0/gpu_launch.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "layers/l0/kernel.h"

namespace l3c::ptx {

struct EmitOptions {
  std::string_view target = "";  // another than that of the kernel's launch
  // exp2, log2, sin, reciprocal and sqrt by the hardware's approximations: relative errors of about
  // 2⁻²² (sin: absolute, of small arguments).
  bool approximate = false;
};

// Those that there is PTX for: "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100".
std::span<const std::string_view> Targets();

// Unimplemented for what PTX has no code of ours for; InvalidArgument for a kernel without a launch
// or a target that is none of the above.
absl::StatusOr<std::string> EmitPtx(const l0::Kernel& kernel, const EmitOptions& options = {});

}  // namespace l3c::ptx
