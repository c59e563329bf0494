// Staged values: a factor of a sum that many iterations use again is computed once into memory of
// the worker's own, in the order in which it will be read.
//
// A row of a wide matrix and the one below it lie a whole row apart; a tile of columns, read down
// the sum, then meets few sets of the caches and a page of its own in every row. The copy lies in
// one piece. It is a matter of the schedule: it changes no result.
//
// A value may be staged when it reads only parameters that the kernel does not write, contains no
// reduction, and its axes are a loop or grid axis, the tiled one, reduce axes without lanes, and at
// most such others as stand outside of the tiled one and take one iteration at a time. It is
// computed
//   for a tile    of the tiled axis, where another loop runs inside and uses the tile again
//   for a block   all tiles of that axis, where it is innermost: in each block of the grid those
//                 that the block has or, where the value has other loop or grid axes, in each of
//                 their iterations all there are, if a loop between those and it uses them again
// Element (t, k) of the copy lies at (t / tile) * tile * K + k * tile + t % tile, where t counts
// from the first iteration of the tile or block, K is the number of points of the reduce axes and k
// counts them, the last one fastest.
//
// Example, 64 columns of w beside each other for all rows of x:
//   axis j : grid 1024 block 64 tile 64 vector 16
//   axis i : loop 512 tile 6
//   axis k : reduce 1024
//   %1 = load w[j + 1024*k] staged
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::l0 {

// Of all staged values of a kernel together: they lie on the worker's stack, and in its caches.
inline constexpr int64_t kMaxStagedBytes = 768 << 10;

struct Staging {
  AxisId axis = 0;             // the tiled one
  std::vector<AxisId> reduce;  // outermost first
  bool whole_block = false;    // computed for a block, not for a tile
  std::optional<AxisId> each;  // for a block: in each iteration of this axis; nothing: of the grid
  int64_t sum = 1;             // K
  int64_t elements = 0;        // of the copy
  int64_t bytes = 0;
};

// How value `id` is staged under the kernel's schedule (whether or not it is marked so). `free` are
// FreeAxes. Nothing where it may not be, with the reason in `*why` where that is given.
std::optional<Staging> StagingOf(const Kernel& kernel, UopId id, const std::vector<AxisSet>& free,
                                 std::string* why = nullptr);

}  // namespace l3c::l0
