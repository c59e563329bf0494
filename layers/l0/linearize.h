// A kernel with its schedule applied: a straight list of UOps over typed registers, with loops and
// conditions as brackets. A backend turns each entry into a few instructions of its own; nothing is
// left to decide but their selection, order and registers.
//
// What the schedule becomes
// - Nest. Each store lies in a nest of its free axes, outermost first; stores share the loops they
//   have in common. A value is computed in the loop of the deepest of its free axes, once, before
//   any loop inside that needs it; a value without axes before all loops.
// - Register tiles. A loop takes `tile` iterations at a time; a value that depends on the axis then
//   has one register for each point of the tile (unroll and jam). `vector` neighbouring iterations
//   are the lanes of one register. What remains of an extent is a second body with just as many
//   points, and, where lanes are left over, with the first `active` lanes only.
// - Reductions. Accumulators live in registers around the loops of the bound axes; reductions over
//   the same axes that do not need one another share one loop. A reduce axis with lanes keeps
//   tile/vector partial accumulators of `vector` lanes, folded pairwise ((0+1)+(2+3)), then within
//   the register by halves (lane l with lane l + n/2). A reduce axis without lanes is folded in
//   order, whatever its tile. Where the result has lanes as well, of another axis, each of those
//   has accumulators of its own; registers are then folded two by two, which leaves the sums as
//   lanes.
// - Fetching ahead. Where the rows of a panel that a sum of products reads lie apart, the body of
//   its loop asks for a row that comes some iterations later, which processors do not foresee.
// - Transposition. A load whose lanes are strided, but which is contiguous along another axis of
// the
//   register tile, reads that axis a row at a time; GEP takes the columns of the block of rows.
// - Contraction. A float product that only a sum or a sum-reduction reads, in the same loop, is
//   fused with it (MULACC rounds once).
// - Staging. What a staged load (layers/l0/staging.h) reads is copied into a buffer of the worker's
//   own when the body of its tile, or the block, begins; its sum then reads the copy.
// - Tiles. A sum that is made in tiles (layers/l0/tile_product.h) has registers of several rows:
// zero,
//   then a WMMA for each piece of the sum. They are stored into memory of the worker's own, from
//   which each use of the sum loads its row.
// - Threads. For a GPU (layers/l0/gpu_launch.h) the list is what one thread does; the block that it
//   works on and its place along x and y are given. REDUCE with `across` folds over threads.
// - The grid. The outermost loop runs over blocks; block b covers, of each grid axis, `block`
//   iterations from its coordinate times `block` (the last grid axis counts fastest).
//
// Example: y[i] = Σ_k x[100 i + k], `axis i : grid 8 block 4`, `axis k : reduce 100 tile 32 vector
// 16`
//   r2 = range r0 .. r1 step 1 : i64                     the blocks asked for
//     r3 = index 4*r2 : i64                              first row of the block
//     r4 = index r3 + 4 : i64
//     r5 = range r3 .. r4 step 1 : i64
//       r6 = index 100*r5 : i64                          start of the row
//       r7 = const 0.0 : f32x16                          partial accumulators
//       r8 = const 0.0 : f32x16
//       r9 = range 0 .. 96 step 32 : i64
//         r10 = index r6 + r9 : i64
//         r11 = load x[r10] : f32x16
//         r7 = add r7, r11 : f32x16
//         r12 = load x[r10 + 16] : f32x16
//         r8 = add r8, r12 : f32x16
//       end
//       r13 = load x[r6 + 96] active 4 : f32x16          what is left of the row
//       r14 = add r7, r13 : f32x16
//       r7 = where active 4 ? r14 : r7 : f32x16
//       r15 = add r7, r8 : f32x16
//       r16 = reduce_add r15 : f32
//       store y[r5], r16
//     end
//   end
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/kernel.h"

namespace l3c::l0 {

struct CustomOp;

// A register has one dtype and one number of lanes (LinearKernel::registers). Most are assigned
// once; an accumulator is assigned again, always by an op that also reads it.
using Reg = uint32_t;
inline constexpr Reg kNoReg = UINT32_MAX;

struct RegisterType {
  DType dtype = DType::kI64;
  uint16_t lanes = 1;
  uint16_t rows = 0;  // of a tile; 0: no tile
  bool reassigned = false;
};

struct LinearOp {
  UOp op = UOp::kConst;
  Fold fold = Fold::kAdd;  // reduce
  Reg dst = kNoReg;
  // Operands by op; those of an arithmetic op have as many lanes as dst. `i` below is `offset`.
  //   const                    number (float) or integer, in every lane
  //   range                    dst counts from a (or low, without a) by step while below b (or
  //   high) end, endif               close the innermost range, if if a                     runs to
  //   its endif where the scalar bool a is true index                    dst[l] = a[l] / divide +
  //   scale * b[l] + i + l * stride  (i64; a and b
  //                            may be absent, or scalar beside a vector dst)
  //   load                     element a + i of the parameter: with scalar a, dst.lanes neighbours;
  //                            with vector a one element a lane. c: mask, scalar or a lane.
  //                            Without dst: that element's line will be read soon; it may lie
  //                            behind the parameter's end
  //   store                    the same, of value b
  //   add mul max mod cmplt cmpne  a, b
  //   neg reciprocal exp2 log2 sin sqrt cast bitcast  a
  //   mulacc                   a * b + c, rounded once; of a and b u32: bf16_dot, added to c
  //   custom                   `custom` of a, b and c: those that are not made of other ops
  //   where                    a ? b : c; without a: lanes below `active` ? b : c
  //   vectorize                the scalar a in every lane
  //   gep                      dst[l] = lane `integer` of register a + l: a column of a block of as
  //                            many registers as lanes, all of which are assigned just before
  //   reduce                   the scalar fold of a's lanes, by halves; with `across` the fold of
  //                            each lane of a over the threads along x, which all have it then.
  //                            With `integer` w: of each w neighbours of a, then of b where it is
  //                            there, the w/2 folds of lane l with lane l + w/2
  // Of tiles, rows of as many lanes, `stride` elements apart in memory:
  //   const                    zero
  //   load, store              row 0 begins at element a + i
  //   wmma                     c + a · b, each element by Bf16TileSum; dst is c. f32 from u32
  Reg a = kNoReg;
  Reg b = kNoReg;
  Reg c = kNoReg;
  uint32_t param = 0;
  uint16_t active = 0;  // load, store, where: only the first lanes; 0: all
  bool across = false;  // reduce
  const CustomOp* custom = nullptr;
  double number = 0;
  int64_t integer = 0;
  int64_t offset = 0;
  int64_t scale = 0;
  int64_t stride = 0;
  int64_t divide = 1;
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;
};

// Memory of the worker's own, for as long as the call lasts.
struct LocalBuffer {
  DType dtype = DType::kF32;
  int64_t elements = 0;
};

struct LinearKernel {
  std::string name;
  std::vector<Param> params;
  std::vector<LocalBuffer> locals;  // loads and stores know them as the parameters behind `params`
  std::vector<RegisterType> registers;
  std::vector<LinearOp> ops;
  // Bounds of the outermost range, given at the call. For threads: the block at hand; no end.
  Reg block_begin = 0;
  Reg block_end = 1;
  std::optional<GpuLaunch> launch;  // for threads
  Reg thread_x = kNoReg;            // the thread's place along x and y
  Reg thread_y = kNoReg;
};

struct LinearizeOptions {
  bool contract = true;  // MULACC
  bool threads = false;  // for the threads of the kernel's launch, which is ignored otherwise
};

// Expects a kernel that VerifyKernel accepts. ResourceExhausted when the schedule unrolls to more
// than kMaxLinearOps; Unimplemented for WMMA.
inline constexpr size_t kMaxLinearOps = 1 << 17;
absl::StatusOr<LinearKernel> Linearize(const Kernel& kernel, const LinearizeOptions& options = {});

// One op a line, as in the example.
std::string PrintLinear(const LinearKernel& kernel);

}  // namespace l3c::l0
