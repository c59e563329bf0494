// How the threads of a GPU share the work of a kernel.
//
//   launch sm_80 grid 16 block 32, 1, 8
//   axis i : grid 128 block 1
//   axis j : reduce 784 tile 4 vector 4 across x
//
// x·y threads run a block of the kernel's grid together, and z such blocks lie side by side in a
// thread block, so the grid has ⌈NumBlocks / z⌉ of those. Each of the threads does all that the
// block's code says, but
// - of an axis `across x` (or y) the tiles are dealt out: thread t takes tiles t, t + x, t + 2x, …;
// - a reduction over such an axis ends with a fold over the threads along x, after which all of
//   them have it: within a warp lane l meets l + x/2, then l + x/4, …, so that all threads get the
//   same bits; then the warps' results are added in order, through shared memory;
// - a store whose nest is dealt out along neither x nor y is made by the first thread along each.
//
// In the example a warp sums a row, and a thread block of 256 threads has eight rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::l0 {

inline constexpr int64_t kGpuWarp = 32;
inline constexpr int64_t kMaxGpuThreads = 1024;     // of a thread block
inline constexpr int64_t kMaxGpuGrid = INT32_MAX;   // CUDA Programming Guide, technical specs
inline constexpr int64_t kMaxGpuShared = 48 << 10;  // bytes that need no special request

// The threads along x and y that run a block of the grid, and blocks side by side.
struct GpuThreads {
  std::string arch;
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
  bool operator==(const GpuThreads&) const = default;
};

// The launch of a scheduled kernel with so many threads; nothing without any.
std::optional<GpuLaunch> LaunchOf(const Kernel& kernel, const std::optional<GpuThreads>& threads);

// Bytes of shared memory for what the threads of a block exchange.
int64_t SharedBytes(const Kernel& kernel, const GpuThreads& threads);

// Threads of `launch` along a dimension; 1 along none.
int64_t ThreadsAlong(const GpuLaunch& launch, Across across);

struct LaunchFault {
  std::optional<UopId> uop;
  bool bound = false;  // a limit is passed
  std::string message;
};

// Why the kernel may not run with these threads: its figures are not those that follow from its
// axes; a value would be dealt out twice along one dimension; threads would wait for others that
// never come; or two threads would touch one element in no order.
std::optional<LaunchFault> CheckLaunch(const Kernel& kernel, const std::vector<AxisSet>& free);

}  // namespace l3c::l0
