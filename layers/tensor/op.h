// The op set of the tensor algebra: one table, one entry an op.
//
// Primitive ops are the closed set that every layer below L2 means and every backend implements.
// A derived op (sub, div, exp, tanh, …) is one entry with an expansion into other ops; it needs
// nothing else anywhere: shape rule, differentiation, fusion and code all follow from the
// expansion. Tests register derived ops of their own and expect every backend to run them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/tensor/dtype.h"

namespace l3c::tensor {

class Graph;
using NodeId = uint32_t;

enum class Op : uint16_t {
  // leaves
  kInput,   // named input of the graph
  kConst,   // scalar constant: attr.scalar, attr.dtype; shape []
  kIota,    // attr.ints = shape, counts along attr.axis; attr.dtype
  kRandom,  // Philox4x32-10 uniform in [0,1): attr.ints = shape; inputs: key (u64 scalar)
  // elementwise; operands have the same shape and, but for where and cast, the same dtype.
  // max is NaN when either operand is, and +0 is greater than -0; mod has the sign of the dividend
  // (C's fmod and %), and an integer modulo zero is 0. Integers wrap. On bool, add and max are
  // "or", mul is "and". A cast to an integer truncates towards zero and saturates, NaN gives 0;
  // a cast to bool is "is not zero".
  kAdd,
  kMul,
  kNeg,
  kRecip,
  kMax,
  kMod,
  kExp2,
  kLog2,
  kSin,
  kSqrt,
  kCmpLt,
  kCmpNe,
  kWhere,
  kCast,      // attr.dtype
  kBitcast,   // attr.dtype
  kBf16Pair,  // two f32 rounded to bfloat16, in one u32 (layers/tensor/bf16.h)
  // reductions over attr.ints (axes, ascending, at least one); the axes disappear. The sum of
  // nothing is 0, the max of nothing the lowest value (-inf); max propagates NaN
  kReduceSum,
  kReduceMax,
  // [..., m, k] x [..., k, n] -> [..., m, n]; batch extents equal
  kMatmul,
  // the same of pairs: u32 [..., m, k] x u32 [..., k, n] -> f32 [..., m, n], 2k terms a sum
  kBf16Matmul,
  // movement: no arithmetic
  kReshape,  // attr.ints = new shape
  kPermute,  // attr.ints = permutation
  kExpand,   // attr.ints = new shape; numpy's right-aligned broadcasting, rank may grow
  kPad,      // attr.ints = before0, after0, before1, …; fills with zero
  kSlice,    // attr.ints = start0, stop0, step0, start1, …; step > 0
  kFlip,     // attr.ints = axes
  // indexing
  kGather,        // (x[n, …], index i32/i64 [k…]) -> [k…, …]; out of range reads 0
  kScatterAdd,    // (index [k…], updates [k…, …]) -> attr.ints; deterministic, ascending k
  kFirstDerived,  // ids from here on are registered at start-up, see RegisterDerived
};

struct Attributes {
  std::vector<int64_t> ints;
  int64_t axis = 0;
  double scalar = 0;
  DType dtype = DType::kF32;
  bool operator==(const Attributes&) const = default;
};

// How an op's attributes are written after its operands; layers/tensor/text.h has the spelling.
enum class AttrForm : uint8_t {
  kNone,
  kConst,         // value [, dtype]
  kIota,          // shape, dtype, axis: n
  kDType,         // dtype
  kAxes,          // axis: n | [n, …]; left out: all axes
  kOptionalAxes,  // the same, but "all axes" stays unwritten (empty attr.ints)
  kShape,         // [n, …]
  kPadding,       // [[before, after], …]
  kSlice,         // [[start, stop, step], …]
};

enum class OpClass : uint8_t {
  kLeaf,
  kElementwise,
  kReduction,
  kContraction,
  kMovement,
  kIndexing
};

struct OpDef {
  Op op;
  std::string name;     // "add"; the L1 spelling is "tensor_" + name unless l1_name is set
  std::string l1_name;  // "tensor_broadcast" for expand, "tensor_transpose", …
  OpClass op_class;
  int arity;
  std::string doc;  // one line
  // Derived ops only: appends the expansion to `graph`, returns its root.
  std::function<NodeId(Graph& graph, std::span<const NodeId> inputs, const Attributes&)> expand;
  AttrForm attr_form = AttrForm::kNone;
};

inline bool IsDerived(Op op) { return op >= Op::kFirstDerived; }

const OpDef& Definition(Op op);
std::optional<Op> FindOp(std::string_view name);  // by name ("add") or L1 spelling
std::vector<Op> AllOps();                         // in table order

// Adds a derived, elementwise-by-expansion op. The name must be new (else std::invalid_argument).
// Its L1 spelling is "tensor_" + name. Not thread-safe: call before graphs are built (static
// initialisation or a test's set-up).
Op RegisterDerived(
    std::string name, int arity, std::string doc,
    std::function<NodeId(Graph&, std::span<const NodeId>, const Attributes&)> expand);

}  // namespace l3c::tensor
