#include "layers/tensor/gradient_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "layers/tensor/shape_rules.h"

namespace l3c::tensor {
namespace {

bool IsIdentity(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Whether every partial sum of up to 2^20 copies is exact in f32.
bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::abs(std::frexp(value, &exponent)) == 0.5 &&
         std::abs(exponent) < 100;
}

}  // namespace

GradientBuilder::GradientBuilder(Graph& graph)
    : graph_(graph), first_(static_cast<NodeId>(graph.size())) {
  for (NodeId id = 0; id < graph.size(); ++id) Record(id);
}

GradientBuilder::Key GradientBuilder::KeyOf(Op op, const std::vector<NodeId>& inputs,
                                            const Attributes& attr) {
  return {op, inputs, attr.ints, attr.axis, std::bit_cast<uint64_t>(attr.scalar), attr.dtype};
}

// Notes what is known of a node that exists.
void GradientBuilder::Record(NodeId id) {
  const tensor::Node& node = graph_.node(id);
  std::optional<double> uniform;
  if (node.op == Op::kConst && IsFloat(node.dtype)) {
    uniform = node.attr.scalar;
  } else if (node.op == Op::kExpand || node.op == Op::kReshape || node.op == Op::kPermute) {
    uniform = uniform_[node.inputs[0]];
  }
  uniform_.push_back(uniform);
  named_.push_back(id < first_);
  // An unnamed literal belongs to the one application that it is written in.
  if (node.op != Op::kInput && !node.name.empty()) {
    applications_.try_emplace(KeyOf(node.op, node.inputs, node.attr), id);
  }
}

Value GradientBuilder::Of(NodeId id) const {
  const tensor::Node& node = graph_.node(id);
  return {node.dtype, node.shape, uniform_[id], id, {}};
}

Value GradientBuilder::Uniform(double value, DType dtype, Shape shape) const {
  return {dtype, std::move(shape), RoundToDType(value, dtype), Value::kNoNode, {}};
}

Value GradientBuilder::UniformLike(double value, const Value& like) const {
  return Uniform(value, like.dtype, like.shape);
}

NodeId GradientBuilder::Node(const Value& value) {
  if (value.node != Value::kNoNode) {
    NodeId node = value.node;
    if (graph_.node(node).shape != value.shape) {
      node = ApplyInts(Op::kReshape, {node}, value.shape).node;
    }
    if (!value.factor) return node;
    if (value.factor != -1.0) {
      return Apply(Op::kMul, {node, Node(UniformLike(*value.factor, value))}).node;
    }
    const tensor::Node& negated = graph_.node(node);
    return negated.op == Op::kNeg ? negated.inputs[0] : Apply(Op::kNeg, {node}).node;
  }
  Attributes attr;
  attr.scalar = *value.uniform;
  attr.dtype = value.dtype;
  const NodeId scalar = Apply(Op::kConst, {}, attr).node;
  if (value.shape.empty()) return scalar;
  return ApplyInts(Op::kExpand, {scalar}, value.shape).node;
}

bool GradientBuilder::IsPending(const Value& value) const {
  return value.node == Value::kNoNode || value.factor ||
         graph_.node(value.node).shape != value.shape;
}

void GradientBuilder::Name(NodeId id, const std::string& name) {
  if (named_[id] || graph_.Find(name)) return;
  graph_.Rename(id, name);
  named_[id] = true;
}

Value GradientBuilder::Apply(Op op, std::vector<NodeId> inputs, Attributes attr) {
  Key key = KeyOf(op, inputs, attr);
  if (auto it = applications_.find(key); it != applications_.end()) return Of(it->second);
  const NodeId id = graph_.Add(op, std::move(inputs), std::move(attr));
  Record(id);
  return Of(id);
}

Value GradientBuilder::ApplyInts(Op op, std::vector<NodeId> inputs, std::vector<int64_t> ints) {
  Attributes attr;
  attr.ints = std::move(ints);
  return Apply(op, std::move(inputs), std::move(attr));
}

Value GradientBuilder::Add(const Value& a, const Value& b) {
  if (a.uniform && b.uniform) return UniformLike(*a.uniform + *b.uniform, a);
  const NodeId left = Node(a);
  return Apply(Op::kAdd, {left, Node(b)});
}

Value GradientBuilder::Mul(const Value& a, const Value& b) {
  if (a.uniform && b.uniform) return UniformLike(*a.uniform * *b.uniform, a);
  if (a.uniform) return MulFactor(b, *a.uniform);
  if (b.uniform) return MulFactor(a, *b.uniform);
  const bool negative = (a.factor == -1.0) != (b.factor == -1.0);
  Value left = a;
  Value right = b;
  if (left.factor == -1.0) left.factor.reset();
  if (right.factor == -1.0) right.factor.reset();
  const NodeId first = Node(left);
  const Value product = Apply(Op::kMul, {first, Node(right)});
  return negative ? Neg(product) : product;
}

Value GradientBuilder::MulFactor(const Value& a, double factor) {
  Value product = a;
  if (!a.factor) {
    product.factor = factor;
  } else {
    // Signs combine exactly; other factors only where they cancel.
    const double both = RoundToDType(*a.factor * factor, a.dtype);
    if (std::abs(*a.factor) == 1 || std::abs(factor) == 1 || std::abs(both) == 1) {
      product.factor = both;
    } else {
      product = Of(Node(a));
      product.factor = factor;
    }
  }
  if (product.factor == 1.0) product.factor.reset();
  return product;
}

Value GradientBuilder::Neg(const Value& a) {
  if (a.uniform) return UniformLike(-*a.uniform, a);
  return MulFactor(a, -1);
}

Value GradientBuilder::Recip(const Value& a) { return Unary(Op::kRecip, a); }

Value GradientBuilder::Unary(Op op, const Value& a) { return Apply(op, {Node(a)}); }

Value GradientBuilder::Cos(const Value& a) {
  const Value s = Unary(Op::kSin, Mul(a, UniformLike(0.5, a)));
  return Add(Mul(Mul(s, s), UniformLike(-2, a)), UniformLike(1, a));
}

Value GradientBuilder::CmpLt(const Value& a, const Value& b) {
  const NodeId left = Node(a);
  return Apply(Op::kCmpLt, {left, Node(b)});
}

Value GradientBuilder::CmpNe(const Value& a, const Value& b) {
  const NodeId left = Node(a);
  return Apply(Op::kCmpNe, {left, Node(b)});
}

Value GradientBuilder::Where(const Value& condition, const Value& a, const Value& b) {
  const NodeId chosen = Node(a);
  const NodeId other = Node(b);
  return Apply(Op::kWhere, {Node(condition), chosen, other});
}

Value GradientBuilder::Cast(const Value& a, DType dtype) {
  if (a.dtype == dtype) return a;
  if (a.uniform && IsFloat(dtype)) return Uniform(*a.uniform, dtype, a.shape);
  Attributes attr;
  attr.dtype = dtype;
  return Apply(Op::kCast, {Node(a)}, attr);
}

Value GradientBuilder::Matmul(const Value& a, const Value& b) {
  const NodeId left = Node(a);
  return Apply(Op::kMatmul, {left, Node(b)});
}

Value GradientBuilder::ReduceSum(const Value& a, const std::vector<int64_t>& axes) {
  if (axes.empty()) return a;
  if (a.uniform && IsPowerOfTwo(*a.uniform)) {
    int64_t count = 1;
    Shape shape;
    for (size_t i = 0; i < a.shape.size(); ++i) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
        shape.push_back(a.shape[i]);
      } else {
        count *= a.shape[i];
      }
    }
    if (count <= int64_t{1} << 20) {
      return Uniform(*a.uniform * static_cast<double>(count), a.dtype, shape);
    }
  }
  return ApplyInts(Op::kReduceSum, {Node(a)}, axes);
}

Value GradientBuilder::Reshape(const Value& a, const Shape& shape) {
  if (a.shape == shape) return a;
  if (a.uniform) return Uniform(*a.uniform, a.dtype, shape);
  Value reshaped = a;
  if (graph_.node(a.node).op == Op::kReshape) reshaped.node = graph_.node(a.node).inputs[0];
  reshaped.shape = shape;
  return reshaped;
}

Value GradientBuilder::Expand(const Value& a, const Shape& shape) {
  if (a.shape == shape) return a;
  if (a.uniform) return Uniform(*a.uniform, a.dtype, shape);
  return ApplyInts(Op::kExpand, {Node(a)}, shape);
}

Value GradientBuilder::Permute(const Value& a, const std::vector<int64_t>& order) {
  if (IsIdentity(order)) return a;
  if (a.uniform) {
    Shape shape;
    for (int64_t axis : order) shape.push_back(a.shape[axis]);
    return Uniform(*a.uniform, a.dtype, shape);
  }
  const NodeId from = Node(a);
  const tensor::Node& node = graph_.node(from);
  if (node.op == Op::kPermute) {
    std::vector<int64_t> composed;
    for (int64_t axis : order) composed.push_back(node.attr.ints[axis]);
    return Permute(Of(node.inputs[0]), composed);
  }
  return ApplyInts(Op::kPermute, {from}, order);
}

Value GradientBuilder::Transpose(const Value& a) {
  std::vector<int64_t> order(a.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return Permute(a, order);
}

Value GradientBuilder::Pad(const Value& a, const std::vector<int64_t>& padding) {
  if (std::all_of(padding.begin(), padding.end(), [](int64_t n) { return n == 0; })) return a;
  return ApplyInts(Op::kPad, {Node(a)}, padding);
}

Value GradientBuilder::Slice(const Value& a, const std::vector<int64_t>& ranges) {
  bool whole = true;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    whole =
        whole && ranges[3 * i] == 0 && ranges[3 * i + 1] == a.shape[i] && ranges[3 * i + 2] == 1;
  }
  if (whole) return a;
  return ApplyInts(Op::kSlice, {Node(a)}, ranges);
}

Value GradientBuilder::Flip(const Value& a, const std::vector<int64_t>& axes) {
  if (a.uniform) return a;
  return ApplyInts(Op::kFlip, {Node(a)}, axes);
}

Value GradientBuilder::Gather(const Value& a, const Value& index) {
  const NodeId from = Node(a);
  return Apply(Op::kGather, {from, Node(index)});
}

Value GradientBuilder::ScatterAdd(const Value& index, const Value& updates, const Shape& shape) {
  const NodeId at = Node(index);
  return ApplyInts(Op::kScatterAdd, {at, Node(updates)}, shape);
}

Value GradientBuilder::Unreduce(const Value& reduced, const std::vector<int64_t>& axes,
                                const Shape& shape) {
  // Leading axes come back by broadcasting alone.
  if (IsIdentity(axes)) return Expand(reduced, shape);
  Shape kept = shape;
  for (int64_t axis : axes) kept[axis] = 1;
  return Expand(Reshape(reduced, kept), shape);
}

}  // namespace l3c::tensor
