#include "layers/tensor/derived.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "layers/tensor/graph.h"

// Every expansion is written so that neither its value nor its gradient (which differentiation
// derives from the expansion) is NaN or infinite where the function itself is not:
//
//   relu     a select, not max(a, 0): the gradient at 0 is 0, and a NaN stays a NaN.
//   sigmoid  e = 2^(-|a| log2 e) is at most 1, so nothing overflows for large |a|; the select in
//            place of |a| keeps the slope 1/4 at 0.
//   cos      1 - 2 sin^2(a / 2): halving is exact, where adding pi / 2 would lose the low bits.
//
// exp and log carry the rounding of a * log2 e: about |a| 2^-24 relative in f32.

namespace l3c::tensor {
namespace {

using Operands = std::span<const NodeId>;

NodeId Apply(Graph& g, std::string_view name, std::vector<NodeId> operands, Attributes attr = {}) {
  return g.Add(*FindOp(name), std::move(operands), std::move(attr));
}

// `value` in the dtype and shape of `like`.
NodeId FullLike(Graph& g, double value, NodeId like) {
  const DType dtype = g.node(like).dtype;
  const Shape shape = g.node(like).shape;
  if (!IsFloat(dtype) && value != std::trunc(value)) {
    throw ShapeError("needs f32 or f64; tensor_cast the operand first");
  }
  return g.Full(value, shape, dtype);
}

NodeId MulConst(Graph& g, NodeId a, double value) {
  return g.Binary(Op::kMul, a, FullLike(g, value, a));
}

// a < 0
NodeId IsNegative(Graph& g, NodeId a) { return g.Binary(Op::kCmpLt, a, FullLike(g, 0, a)); }

// The axes to reduce: all of them when none are given.
std::vector<int64_t> AxesOrAll(const Graph& g, NodeId a, const Attributes& attr) {
  if (!attr.ints.empty()) return attr.ints;
  std::vector<int64_t> axes(g.node(a).shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Numbers ------------------------------------------------------------------------------------

NodeId Sub(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kAdd, in[0], g.Unary(Op::kNeg, in[1]));
}

NodeId Div(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kMul, in[0], g.Unary(Op::kRecip, in[1]));
}

NodeId Min(Graph& g, Operands in, const Attributes&) {
  return g.Unary(Op::kNeg, g.Binary(Op::kMax, g.Unary(Op::kNeg, in[0]), g.Unary(Op::kNeg, in[1])));
}

NodeId Abs(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kMax, in[0], g.Unary(Op::kNeg, in[0]));
}

NodeId Square(Graph& g, Operands in, const Attributes&) { return g.Binary(Op::kMul, in[0], in[0]); }

NodeId Scale(Graph& g, Operands in, const Attributes&) {
  if (!g.node(in[1]).shape.empty()) {
    throw ShapeError("the second operand must be a scalar; write tensor_mul for elementwise");
  }
  const Shape shape = g.node(in[0]).shape;
  return g.Binary(Op::kMul, in[0], shape.empty() ? in[1] : g.Expand(in[1], shape));
}

NodeId Sign(Graph& g, Operands in, const Attributes&) {
  const NodeId zero = FullLike(g, 0, in[0]);
  const NodeId one = FullLike(g, 1, in[0]);
  const NodeId minus_one = FullLike(g, -1, in[0]);
  // Zeros and NaN are themselves.
  const NodeId not_above = g.Add(Op::kWhere, {g.Binary(Op::kCmpLt, in[0], zero), minus_one, in[0]});
  return g.Add(Op::kWhere, {g.Binary(Op::kCmpLt, zero, in[0]), one, not_above});
}

// a - mod(a, 1) truncates; below zero with a fraction, one less.
NodeId Floor(Graph& g, Operands in, const Attributes&) {
  const NodeId fraction = g.Binary(Op::kMod, in[0], FullLike(g, 1, in[0]));
  const NodeId truncated = Apply(g, "sub", {in[0], fraction});
  const NodeId below = Apply(g, "sub", {truncated, FullLike(g, 1, in[0])});
  return g.Add(Op::kWhere, {IsNegative(g, fraction), below, truncated});
}

// Comparisons ----------------------------------------------------------------------------------

NodeId Not(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kCmpNe, in[0], g.Full(1, Shape(g.node(in[0]).shape), DType::kBool));
}

NodeId CmpGt(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kCmpLt, in[1], in[0]);
}

NodeId CmpEq(Graph& g, Operands in, const Attributes&) {
  return Apply(g, "not", {g.Binary(Op::kCmpNe, in[0], in[1])});
}

// Less or equal, false for NaN, hence not the negation of b < a.
NodeId CmpLe(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kAdd, g.Binary(Op::kCmpLt, in[0], in[1]), Apply(g, "cmpeq", {in[0], in[1]}));
}

NodeId CmpGe(Graph& g, Operands in, const Attributes&) { return Apply(g, "cmple", {in[1], in[0]}); }

// Functions ------------------------------------------------------------------------------------

NodeId Exp(Graph& g, Operands in, const Attributes&) {
  return g.Unary(Op::kExp2, MulConst(g, in[0], std::numbers::log2e));
}

NodeId Log(Graph& g, Operands in, const Attributes&) {
  return MulConst(g, g.Unary(Op::kLog2, in[0]), std::numbers::ln2);
}

NodeId Rsqrt(Graph& g, Operands in, const Attributes&) {
  return g.Unary(Op::kRecip, g.Unary(Op::kSqrt, in[0]));
}

NodeId Cos(Graph& g, Operands in, const Attributes&) {
  const NodeId s = g.Unary(Op::kSin, MulConst(g, in[0], 0.5));
  const NodeId twice = MulConst(g, g.Binary(Op::kMul, s, s), -2);
  return g.Binary(Op::kAdd, twice, FullLike(g, 1, in[0]));
}

// e^-|a|, at most 1. The sign goes into the constant, so that the slope of -|a| at 0 is -1 (that of
// max(a, -a) would be 0).
NodeId ExpOfNegAbs(Graph& g, NodeId a, NodeId negative) {
  const NodeId up = FullLike(g, std::numbers::log2e, a);
  const NodeId down = FullLike(g, -std::numbers::log2e, a);
  return g.Unary(Op::kExp2, g.Binary(Op::kMul, a, g.Add(Op::kWhere, {negative, up, down})));
}

// 1 / (1 + e^-|a|), times e^-|a| where a < 0.
NodeId Sigmoid(Graph& g, Operands in, const Attributes&) {
  const NodeId negative = IsNegative(g, in[0]);
  const NodeId e = ExpOfNegAbs(g, in[0], negative);
  const NodeId one = FullLike(g, 1, e);
  const NodeId r = g.Unary(Op::kRecip, g.Binary(Op::kAdd, e, one));
  return g.Binary(Op::kMul, r, g.Add(Op::kWhere, {negative, e, one}));
}

NodeId Tanh(Graph& g, Operands in, const Attributes&) {
  const NodeId s = Apply(g, "sigmoid", {MulConst(g, in[0], 2)});
  return g.Binary(Op::kAdd, MulConst(g, s, 2), FullLike(g, -1, s));
}

// log(1 + e^a) = relu(a) + log(1 + e^-|a|)
NodeId Softplus(Graph& g, Operands in, const Attributes&) {
  const NodeId negative = IsNegative(g, in[0]);
  const NodeId e = ExpOfNegAbs(g, in[0], negative);
  const NodeId log = Apply(g, "log", {g.Binary(Op::kAdd, e, FullLike(g, 1, e))});
  const NodeId above = g.Add(Op::kWhere, {negative, FullLike(g, 0, in[0]), in[0]});
  return g.Binary(Op::kAdd, above, log);
}

// Everything below the least positive number of the dtype is 0; a NaN is below nothing.
NodeId Relu(Graph& g, Operands in, const Attributes&) {
  const double least =
      g.node(in[0]).dtype == DType::kF32   ? double{std::numeric_limits<float>::denorm_min()}
      : g.node(in[0]).dtype == DType::kF64 ? std::numeric_limits<double>::denorm_min()
                                           : 1;
  const NodeId below = g.Binary(Op::kCmpLt, in[0], FullLike(g, least, in[0]));
  return g.Add(Op::kWhere, {below, FullLike(g, 0, in[0]), in[0]});
}

NodeId Silu(Graph& g, Operands in, const Attributes&) {
  return g.Binary(Op::kMul, in[0], Apply(g, "sigmoid", {in[0]}));
}

// The tanh form, a/2 (1 + tanh(u)) with u = sqrt(2/pi) (a + 0.044715 a^3), which is
// a sigmoid(2u): one function less, and no cancellation for negative a.
NodeId Gelu(Graph& g, Operands in, const Attributes&) {
  const double c = 2 * std::sqrt(2 / std::numbers::pi);
  const NodeId squared = g.Binary(Op::kMul, in[0], in[0]);
  const NodeId factor =
      g.Binary(Op::kAdd, MulConst(g, squared, c * 0.044715), FullLike(g, c, in[0]));
  const NodeId s = Apply(g, "sigmoid", {g.Binary(Op::kMul, in[0], factor)});
  return g.Binary(Op::kMul, in[0], s);
}

// Reductions and movement ----------------------------------------------------------------------

NodeId ReduceMean(Graph& g, Operands in, const Attributes& attr) {
  const std::vector<int64_t> axes = AxesOrAll(g, in[0], attr);
  if (!IsFloat(g.node(in[0]).dtype)) throw ShapeError("needs f32 or f64; tensor_cast first");
  if (axes.empty()) return in[0];
  double count = 1;
  for (int64_t axis : axes) count *= static_cast<double>(g.node(in[0]).shape[axis]);
  const NodeId sum = g.ReduceSum(in[0], axes);
  // The mean of nothing is 0 * inf, a NaN.
  return MulConst(g, sum, 1 / count);
}

NodeId Transpose(Graph& g, Operands in, const Attributes&) { return g.Transpose(in[0]); }

// A bitcast to its own dtype: the value, without its derivative.
NodeId StopGradient(Graph& g, Operands in, const Attributes&) {
  Attributes attr;
  attr.dtype = g.node(in[0]).dtype;
  return g.Add(Op::kBitcast, {in[0]}, attr);
}

constexpr DerivedEntry kBuiltin[] = {
    {"sub", 2, "a - b", Sub},
    {"div", 2, "a / b, as a times the reciprocal of b", Div},
    {"min", 2, "the lesser; NaN if either is", Min},
    {"abs", 1, "|a|; its gradient at 0 is 0", Abs},
    {"square", 1, "a * a", Square},
    {"scale", 2, "a times a scalar", Scale},
    {"sign", 1, "-1, 1, or a itself where it is zero or NaN", Sign},
    {"floor", 1, "the greatest integer not above a", Floor},
    {"not", 1, "true where a is false", Not},
    {"cmpgt", 2, "a > b, as bool", CmpGt},
    {"cmpeq", 2, "a == b, as bool", CmpEq},
    {"cmple", 2, "a <= b, as bool", CmpLe},
    {"cmpge", 2, "a >= b, as bool", CmpGe},
    {"exp", 1, "e to the power a", Exp},
    {"log", 1, "natural logarithm", Log},
    {"rsqrt", 1, "1 / sqrt(a)", Rsqrt},
    {"cos", 1, "cosine of a, in radians", Cos},
    {"sigmoid", 1, "1 / (1 + e^-a)", Sigmoid},
    {"tanh", 1, "hyperbolic tangent, to an absolute error of one rounding of 1", Tanh},
    {"softplus", 1, "log(1 + e^a)", Softplus},
    {"relu", 1, "a above 0, else 0; its gradient at 0 is 0", Relu},
    {"silu", 1, "a sigmoid(a), also called swish", Silu},
    {"gelu", 1, "the Gaussian error linear unit, tanh form", Gelu},
    {"reduce_mean", 1, "mean over axes", ReduceMean, OpClass::kReduction, AttrForm::kOptionalAxes},
    {"transpose", 1, "swaps the last two axes", Transpose, OpClass::kMovement},
    {"stop_gradient", 1, "a, taken as a constant by differentiation", StopGradient},
};

}  // namespace

std::span<const DerivedEntry> BuiltinDerived() { return kBuiltin; }

}  // namespace l3c::tensor
