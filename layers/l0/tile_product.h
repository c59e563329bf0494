// Sums of products of bfloat16 that are made a tile at a time: 16×16 sums take 16 pairs of each
// factor in one instruction (TDPBF16PS of AMX), or op by op to the same bits where the target has
// none.
//
// `reduce_add %2 over k in tiles`, where %2 = bf16_dot %0, %1 is read by nothing else, cuts k into
// pieces of 16 from its beginning; each piece is added to the sum as Bf16TileSum says
// (layers/tensor/bf16.h). So it is a matter of the schedule which, as lanes along a sum do, changes
// the order of its additions, and every machine gives the same bits.
//
// One factor is the rows': a load whose neighbours lie along k. The other is the columns': a load
// whose neighbours lie along an axis of its own, which has 16 lanes. Both read parameters that the
// kernel does not write, without guards and without a data-dependent index. A tile of the rows'
// axis and one of the columns' are made together, in at most kMaxSumTiles tiles of 16×16 sums; no
// other axis of the sum has a tile.
//
// Example, y = x·w of packed matrices:
//   axis i : grid 128 block 32 tile 32
//   axis j : loop 256 tile 32 vector 16
//   axis k : reduce 392 tile 16
//   %0 = load x[392*i + k]
//   %1 = load w[256*k + j]
//   %2 = bf16_dot %0, %1
//   %3 = reduce_add %2 over k in tiles
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::l0 {

inline constexpr int64_t kTileEdge = 16;      // rows, lanes of a row, and pairs of a piece
inline constexpr int64_t kTileRegisters = 8;  // of 16 rows of 64 bytes, for sums and factors
inline constexpr int64_t kMaxSumTiles = 6;    // which leaves one for each factor

struct TileProduct {
  AxisId rows = 0;
  AxisId columns = 0;
  AxisId sum = 0;
  UopId left = 0;    // the load of the rows' factor
  UopId right = 0;   // and of the columns'
  int64_t tall = 1;  // tiles of rows that are made together
  int64_t wide = 1;  // and of columns
};

// How reduction `id` is made in tiles under the kernel's schedule (whether or not it is marked so).
// `free` are FreeAxes. Nothing where it may not be, with the reason in `*why` where that is given.
std::optional<TileProduct> TileProductOf(const Kernel& kernel, UopId id,
                                         const std::vector<AxisSet>& free,
                                         std::string* why = nullptr);

}  // namespace l3c::l0
