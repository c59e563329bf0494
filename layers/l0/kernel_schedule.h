// Schedules that are worth trying for a kernel, with the figures an analytical model needs.
//
// A kernel is classified by its stores and reductions:
//   matmul      a sum of products in which no loop axis is in both factors' indices and each factor
//               has a loop axis of its own: register tiles of rows × columns; lanes along the loop
//               axis that is contiguous in a factor, or, failing that, along the sum (a dot
//               product)
//   rows        reductions to fewer axes than the stores have: one grid axis, lanes along whatever
//               is contiguous inside it
//   columns     sums over an outer axis: lanes along the contiguous loop axis
//   elementwise everything else
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/gpu_launch.h"
#include "layers/l0/kernel.h"

namespace l3c::l0 {

// What a schedule is made for; the defaults are an x86-64 core with AVX-512.
struct ScheduleTarget {
  int vector_registers = 32;
  int lanes = 16;      // f32 lanes of one register
  int workers = 2;     // blocks are cut so that each has several
  bool tiles = false;  // has tile products (tile_product.h)
  // "sm_80": a GPU. Schedules are then of its threads (schedule_threads.cc), and of the above only
  // the lanes count: threads of a warp.
  std::string gpu = "";
};

enum class KernelClass : uint8_t { kElementwise, kMatmul, kRows, kColumns };

struct AxisSchedule {
  AxisKind kind = AxisKind::kLoop;
  int64_t block = 1;
  int64_t tile = 1;
  int64_t vector = 1;
  Across across = Across::kNone;
};

// An axis cut into blocks: it counts them, and an axis behind the kernel's last counts the
// iterations of a block.
struct AxisSplit {
  AxisId axis = 0;
  int64_t block = 1;  // divides the extent
  bool operator==(const AxisSplit&) const = default;
};

struct Schedule {
  std::string name;  // "tile 6x64", unique among a kernel's candidates
  KernelClass kernel_class = KernelClass::kElementwise;
  std::optional<AxisSplit> split;
  // Both of the kernel's axes and, where one is split, one more:
  std::vector<AxisId> order;       // nest order, outermost first: a permutation of the axes
  std::vector<AxisSchedule> axes;  // by axis id
  std::vector<UopId> staged;       // ascending, see staging.h
  std::vector<UopId> in_tiles;     // ascending, see tile_product.h
  std::optional<GpuThreads> threads;
  // Of the innermost loop, whole kernel:
  double loads_per_fma = 0;  // vector loads and broadcasts for each vector multiply-add
  double far_bytes = 0;      // of operands that no second cache holds, as often as they are read
  double lane_use = 1;       // share of lanes and tile points that do useful work
  int accumulators = 0;      // vector registers held across the innermost loop
  int64_t blocks = 1;
};

KernelClass Classify(const Kernel& kernel);

// Best guess first, at least one, at most eight. The kernel's own schedule is ignored, except that
// grid axes stay legal: an axis becomes a grid axis only where all stores depend on it one to one.
std::vector<Schedule> CandidateSchedules(const Kernel& kernel, const ScheduleTarget& target = {});

// The kernel with one axis split, its axes reordered and scheduled.
Kernel ApplySchedule(const Kernel& kernel, const Schedule& schedule);

}  // namespace l3c::l0
