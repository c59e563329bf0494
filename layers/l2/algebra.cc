#include "layers/l2/algebra.h"

#include <limits>
#include <numbers>
#include <utility>

#include "layers/tensor/op.h"

namespace l3c::l2 {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

NodeId Apply(Graph& g, std::string_view name, std::vector<NodeId> operands,
             tensor::Attributes attributes) {
  return g.Add(*tensor::FindOp(name), std::move(operands), std::move(attributes));
}

NodeId Add(Graph& g, NodeId a, NodeId b) { return g.Binary(Op::kAdd, a, b); }
NodeId Sub(Graph& g, NodeId a, NodeId b) { return Apply(g, "sub", {a, b}); }
NodeId Mul(Graph& g, NodeId a, NodeId b) { return g.Binary(Op::kMul, a, b); }

NodeId FullLike(Graph& g, double value, NodeId like) {
  const DType dtype = g.node(like).dtype;
  return g.Full(value, Shape(g.node(like).shape), dtype);
}

NodeId TimesConstant(Graph& g, NodeId a, double value) {
  return value == 1 ? a : Mul(g, a, FullLike(g, value, a));
}

NodeId PlusConstant(Graph& g, NodeId a, double value) { return Add(g, a, FullLike(g, value, a)); }

NodeId Scaled(Graph& g, NodeId a, NodeId scalar) { return Apply(g, "scale", {a, scalar}); }

NodeId As(Graph& g, NodeId a, DType dtype) {
  return g.node(a).dtype == dtype ? a : g.Cast(a, dtype);
}

NodeId WhereElse(Graph& g, NodeId condition, NodeId x, double other) {
  return g.Add(Op::kWhere, {condition, x, FullLike(g, other, x)});
}

NodeId PowerOfPositive(Graph& g, NodeId a, double e) {
  const NodeId none = g.Binary(Op::kCmpLt, a, FullLike(g, std::numeric_limits<float>::min(), a));
  const NodeId safe = g.Add(Op::kWhere, {none, FullLike(g, 1, a), a});
  const NodeId power =
      e == 0.5 ? g.Unary(Op::kSqrt, safe)
               : g.Unary(Op::kExp2, Mul(g, g.Unary(Op::kLog2, safe), FullLike(g, e, safe)));
  return g.Add(Op::kWhere, {none, FullLike(g, 0, power), power});
}

namespace {

NodeId SumFrom(Graph& g, NodeId a, size_t first) {
  std::vector<int64_t> axes;
  for (size_t i = first; i < g.node(a).shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? a : g.ReduceSum(a, axes);
}

std::vector<int64_t> LastAxis(const Graph& g, NodeId a) {
  return {static_cast<int64_t>(g.node(a).shape.size()) - 1};
}

}  // namespace

NodeId SumAll(Graph& g, NodeId a) { return SumFrom(g, a, 0); }
NodeId SumRows(Graph& g, NodeId a) { return SumFrom(g, a, 1); }

double RowElements(const Graph& g, NodeId a) {
  const Shape& shape = g.node(a).shape;
  double elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= static_cast<double>(shape[i]);
  return elements;
}

NodeId SpreadLast(Graph& g, NodeId reduced, const Shape& shape) {
  Shape kept = shape;
  kept.back() = 1;
  return g.Expand(g.Reshape(reduced, kept), shape);
}

NodeId SumLast(Graph& g, NodeId a) { return g.ReduceSum(a, LastAxis(g, a)); }
NodeId MaxLast(Graph& g, NodeId a) { return g.ReduceMax(a, LastAxis(g, a)); }
NodeId MeanLast(Graph& g, NodeId a) {
  tensor::Attributes last;
  last.ints = LastAxis(g, a);
  return Apply(g, "reduce_mean", {a}, last);
}

namespace {

NodeId Shifted(Graph& g, NodeId x) {
  const Shape shape = g.node(x).shape;
  const NodeId top = Apply(g, "stop_gradient", {MaxLast(g, x)});
  return Sub(g, x, SpreadLast(g, top, shape));
}

}  // namespace

NodeId Softmax(Graph& g, NodeId x) {
  const Shape shape = g.node(x).shape;
  const NodeId e = Apply(g, "exp", {Shifted(g, x)});
  const NodeId sum = SumLast(g, e);
  return Mul(g, e, SpreadLast(g, g.Unary(Op::kRecip, sum), shape));
}

NodeId LogSoftmax(Graph& g, NodeId x) {
  const Shape shape = g.node(x).shape;
  const NodeId shifted = Shifted(g, x);
  const NodeId sum = SumLast(g, Apply(g, "exp", {shifted}));
  return Sub(g, shifted, SpreadLast(g, Apply(g, "log", {sum}), shape));
}

NodeId Iota(Graph& g, Shape shape, int64_t axis, DType dtype) {
  tensor::Attributes iota;
  iota.ints = std::move(shape);
  iota.axis = axis;
  iota.dtype = dtype;
  return g.Add(Op::kIota, {}, iota);
}

NodeId Concatenate(Graph& g, const std::vector<NodeId>& parts, size_t axis) {
  int64_t whole = 0;
  for (NodeId part : parts) whole += g.node(part).shape[axis];
  int64_t before = 0;
  NodeId sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape shape = g.node(parts[i]).shape;
    tensor::Attributes padding;
    padding.ints.assign(2 * shape.size(), 0);
    padding.ints[2 * axis] = before;
    padding.ints[2 * axis + 1] = whole - before - shape[axis];
    const NodeId padded =
        shape[axis] == whole ? parts[i] : g.Add(Op::kPad, {parts[i]}, std::move(padding));
    sum = i == 0 ? padded : Add(g, sum, padded);
    before += shape[axis];
  }
  return sum;
}

NodeId SliceAxis(Graph& g, NodeId a, size_t axis, int64_t start, int64_t stop, int64_t step) {
  const Shape shape = g.node(a).shape;
  if (start == 0 && stop == shape[axis] && step == 1) return a;
  tensor::Attributes ranges;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == axis) {
      ranges.ints.insert(ranges.ints.end(), {start, stop, step});
    } else {
      ranges.ints.insert(ranges.ints.end(), {0, shape[i], 1});
    }
  }
  return g.Add(Op::kSlice, {a}, std::move(ranges));
}

NodeId Uniform(Graph& g, NodeId key, Shape shape) {
  tensor::Attributes attributes;
  attributes.ints = std::move(shape);
  return g.Add(Op::kRandom, {key}, std::move(attributes));
}

NodeId Normal(Graph& g, NodeId key, Shape shape) {
  // One draw of twice the size: the halves are the two uniforms of each number.
  Shape pair = shape;
  pair.insert(pair.begin(), 2);
  const NodeId draws = Uniform(g, key, std::move(pair));
  auto half = [&](int64_t i) { return g.Reshape(SliceAxis(g, draws, 0, i, i + 1), shape); };
  // 1 − u is in (0, 1], whose logarithm is finite.
  const NodeId u = Sub(g, FullLike(g, 1, half(0)), half(0));
  const NodeId radius = g.Unary(Op::kSqrt, TimesConstant(g, Apply(g, "log", {u}), -2));
  return Mul(g, radius, Apply(g, "cos", {TimesConstant(g, half(1), 2 * std::numbers::pi)}));
}

NodeId DeriveKey(Graph& g, NodeId key, std::string_view label) {
  // 32-bit FNV-1a of the label, below 2^53, so that the constant is exact.
  uint32_t hash = 0x811c9dc5;
  for (const char c : label) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x01000193;
  }
  // Odd multipliers keep distinct keys distinct; the product separates labels that differ by one.
  const NodeId spread = Mul(g, key, g.Const(0x9e3779b97f4a7 | 1, DType::kU64));
  return Add(g, spread, Mul(g, g.Const(hash, DType::kU64), g.Const(4294967311.0, DType::kU64)));
}

}  // namespace l3c::l2
