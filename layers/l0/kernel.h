// A kernel: a DAG of UOps rooted at its STOREs, over named axes that carry the schedule.
//
// Meaning (what the interpreter does, and what every schedule must preserve): each STORE runs once
// for every point of the axes that occur free in its index or value; a REDUCE binds its reduce axes
// and folds its operand over them. Where the axes say so, the work is cut into grid blocks,
// register tiles and vector lanes; that changes the order of a reduction and nothing else.
//
// Example, y = x·w with bias:
//   kernel linear(x: in f32 [128, 784], w: in f32 [784, 256], b: in f32 [256],
//                 y: out f32 [128, 256]) {
//       axis i : grid 128 block 12 tile 6
//       axis j : loop 256 tile 64 vector 16
//       axis k : reduce 784
//       %0 = load x[784*i + k]
//       %1 = load w[256*k + j]
//       %2 = mul %0, %1
//       %3 = reduce_add %2 over k
//       %4 = load b[j]
//       %5 = add %3, %4
//       store y[256*i + j], %5
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/support/source.h"
#include "layers/tensor/dtype.h"

namespace l3c::l0 {

using tensor::DType;
using AxisId = uint32_t;
using UopId = uint32_t;

// The specification's op set. A kernel's DAG uses the value ops, RANGE (an axis as an i64 value),
// LOAD, STORE and REDUCE; linearisation introduces the rest (loops, lanes, MULACC).
enum class UOp : uint8_t {
  kLoad,
  kStore,
  kIndex,
  kAdd,
  kMul,
  kMulAcc,
  kNeg,
  kReciprocal,
  kMax,
  kMod,
  kCmpLt,
  kCmpNe,
  kWhere,
  kExp2,
  kLog2,
  kSin,
  kSqrt,
  kRange,
  kEnd,
  kIf,
  kEndIf,
  kBarrier,
  kConst,
  kCast,
  kBitcast,
  kVectorize,
  kGep,
  kWmma,
  kReduce,
  kCustom,
};

enum class AxisKind : uint8_t {
  kGrid,    // blocks of `block` iterations are independent and may run on any worker
  kLoop,    // in order within a block
  kReduce,  // bound by REDUCE
};

// A dimension of the threads of a GPU that an axis is dealt out to: see layers/l0/gpu_launch.h.
enum class Across : uint8_t { kNone, kX, kY };

struct Axis {
  std::string name;
  int64_t extent = 1;
  AxisKind kind = AxisKind::kLoop;
  int64_t block = 1;  // grid: iterations a block; the last block may be short
  int64_t tile = 1;   // iterations held in registers at once (a multiple of `vector`)
  int64_t vector =
      1;  // lanes; of one value at most one non-reduce axis has more than one. A reduce
          // axis with lanes keeps one partial a lane and folds them in a fixed tree;
          // where the result has lanes of its own, it makes their sums one by one.
  Across across = Across::kNone;
};

// constant + Σ coefficient·axis, in elements of a parameter. Terms ascend by axis, none is zero.
struct Affine {
  int64_t constant = 0;
  std::vector<std::pair<AxisId, int64_t>> terms;
  bool operator==(const Affine&) const = default;
};

// Holds where low <= expression < high. A load outside reads zero, a store outside is skipped.
struct Guard {
  Affine expression;
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Guard&) const = default;
};

enum class Fold : uint8_t { kAdd, kMax };

struct Uop {
  UOp op = UOp::kConst;
  DType dtype = DType::kF32;
  std::vector<UopId> src;  // value operands; a store's value is src[0]
  uint32_t param = 0;      // load, store: which parameter
  Affine index;            // load, store
  // load, store: element offset += dynamic_stride * clamp-checked src.back(), when non-zero: a
  // gather. Outside [0, dynamic_extent) a load reads zero and a store is skipped.
  int64_t dynamic_stride = 0;
  int64_t dynamic_extent = 0;
  std::vector<Guard> guards;     // load, store
  bool accumulate = false;       // store: += in the order of the loop axes (scatter-add)
  double number = 0;             // const of a float type
  int64_t integer = 0;           // const of an integer type
  AxisId axis = 0;               // range
  Fold fold = Fold::kAdd;        // reduce
  std::vector<AxisId> axes;      // reduce
  bool staged = false;           // schedule of a value: see layers/l0/staging.h
  bool in_tiles = false;         // schedule of a reduction: see layers/l0/tile_product.h
  std::string custom;            // custom: which (custom_op.h has the table)
  std::vector<uint32_t> memory;  // custom: the parameters that it reads besides its operands
  support::Span span;
};

// CUSTOM(key : u64, index : i64) : f32, printed `philox %key, %index`: element `index` of the
// random numbers of `key`, uniform in [0, 1) (layers/tensor/philox.h).
inline constexpr std::string_view kPhilox = "philox";
// CUSTOM(a : f32, b : f32) : u32, printed `bf16_pair %a, %b`: both rounded to bfloat16, a in the
// low half. CUSTOM(a : u32, b : u32) : f32, `bf16_dot %a, %b`: the sum of the two products of the
// pairs; a sum of them is made by two fused multiply-adds a term (layers/tensor/bf16.h).
inline constexpr std::string_view kBf16Pair = "bf16_pair";
inline constexpr std::string_view kBf16Dot = "bf16_dot";

// What a sum over it takes in one multiply-add: a float product, or bf16_dot.
bool IsProduct(const Uop& uop);

enum class Access : uint8_t { kIn, kOut, kInOut };

struct Param {
  std::string name;
  Access access = Access::kIn;
  DType dtype = DType::kF32;
  tensor::Shape shape;  // of the buffer it will be bound to; indices are flat, row-major
};

// The threads of a GPU that run a kernel: `grid` thread blocks of x·y·z threads, each block with
// `shared` bytes of memory that its threads share. What they do: layers/l0/gpu_launch.h.
struct GpuLaunch {
  std::string arch;  // that the schedule is made for, "sm_80"
  int64_t grid = 1;
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
  int64_t shared = 0;
  bool operator==(const GpuLaunch&) const = default;
};

struct Kernel {
  std::string name;  // unique in the plan
  std::vector<Param> params;
  std::vector<Axis> axes;           // outermost first; grid axes before loop axes
  std::vector<Uop> uops;            // operands before users; stores are the roots
  std::vector<std::string> origin;  // lineage: the tensor values it computes, for --explain
  std::optional<GpuLaunch> launch;  // of a kernel that a GPU runs
  support::Span span;
};

// ceil(extent / block) multiplied over the grid axes; 1 without any.
int64_t NumBlocks(const Kernel& kernel);

// What the body does once over all its iterations, before caches: the cost model's raw input.
struct KernelWork {
  double multiply_adds = 0;    // fused pairs
  double bf16_dots = 0;        // of two products each
  double simple_flops = 0;     // add, mul, max, compare, select, …
  double divides = 0;          // reciprocal, sqrt
  double transcendentals = 0;  // exp2, log2, sin
  double bytes_read = 0;       // distinct bytes of each parameter, once
  double bytes_written = 0;
};
KernelWork CountWork(const Kernel& kernel);
// Of it, what is done again for each point of one of the axes. Without the bytes.
KernelWork CountWork(const Kernel& kernel, const std::vector<AxisId>& along);

// Distinct bytes of a parameter that one launch reads and writes.
struct ParamBytes {
  double read = 0;
  double written = 0;
};
std::vector<ParamBytes> CountBytes(const Kernel& kernel);  // by parameter

}  // namespace l3c::l0
