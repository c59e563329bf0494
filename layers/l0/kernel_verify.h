// Checks of one kernel: read-only, each filed under its property.
//
//   safety          operands precede users, ids in range; dtypes agree; every access lies inside
//                   its parameter, by interval arithmetic over the axes its guards leave; blocks of
//                   the grid write disjoint elements, and nothing is read that another block
//                   writes; a parameter both read and written is read only where it is stored
//   consistency     a schedule keeps the meaning: lanes divide tiles, one vector axis for a value,
//                   an accumulating store keeps the order of its axes; the threads of a GPU
//                   neither meet in memory nor miss one another (gpu_launch.h); access modes (in,
//                   out, inout) say what the body does; names are unique
//   resource-bound  extents, tiles and register tiles within limits
#pragma once

#include "layers/l0/kernel.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0 {

inline constexpr int64_t kMaxExtent = int64_t{1} << 40;
inline constexpr int64_t kMaxTile = 1024;          // iterations of one axis
inline constexpr int64_t kMaxRegisterTile = 1024;  // registers of one value: Π tile / vector
inline constexpr int64_t kMaxLanes = 64;
inline constexpr size_t kMaxUops = 4096;
inline constexpr int kMaxDepth = 1000;  // of operands below one another; passes recurse over them

// True when nothing was reported.
bool VerifyKernel(const Kernel& kernel, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
