#include "layers/tensor/differentiate.h"

#include <algorithm>
#include <numbers>
#include <optional>

#include "layers/tensor/gradient_builder.h"
#include "layers/tensor/shape_rules.h"

// One vector-Jacobian product an op. Each rule reads: given the gradient g of the node's value,
// accumulate the gradient of each operand that wants one.

namespace l3c::tensor {
namespace {

class Reverse {
 public:
  explicit Reverse(Graph& graph) : graph_(graph), b_(graph) {}

  std::vector<NodeId> Run(NodeId loss, std::span<const NodeId> wrt);

 private:
  void Visit(NodeId id, const Value& g);

  Value In(const Node& node, size_t i) const { return b_.Of(node.inputs[i]); }
  bool Wants(const Node& node, size_t i) const { return depends_[node.inputs[i]]; }
  void Accumulate(const Node& node, size_t i, const Value& g) {
    std::optional<Value>& sum = gradient_[node.inputs[i]];
    sum = sum ? b_.Add(*sum, g) : g;
  }

  void Max(const Node& node, const Value& g);
  void Mod(const Node& node, NodeId id, const Value& g);
  void ReduceMax(const Node& node, NodeId id, const Value& g);
  void Matmul(const Node& node, const Value& g);
  void Expand(const Node& node, const Value& g);
  void Permute(const Node& node, const Value& g);
  void Pad(const Node& node, const Value& g);
  void Slice(const Node& node, const Value& g);

  Graph& graph_;
  GradientBuilder b_;
  std::vector<bool> depends_;                   // forward node: does it depend on a wrt?
  std::vector<std::optional<Value>> gradient_;  // forward node: sum so far
};

std::vector<NodeId> Reverse::Run(NodeId loss, std::span<const NodeId> wrt) {
  const NodeId forward_size = static_cast<NodeId>(graph_.size());
  depends_.assign(forward_size, false);
  gradient_.assign(forward_size, std::nullopt);
  for (NodeId id : wrt) depends_[id] = true;
  for (NodeId id = 0; id < forward_size; ++id) {
    const Node& node = graph_.node(id);
    if (!IsFloat(node.dtype) || node.op == Op::kBitcast || node.op == Op::kBf16Matmul) continue;
    for (NodeId input : node.inputs) {
      if (depends_[input]) depends_[id] = true;
    }
  }
  gradient_[loss] = b_.Uniform(1, graph_.node(loss).dtype, {});
  for (NodeId id = loss + 1; id-- > 0;) {
    if (!depends_[id] || !gradient_[id]) continue;
    const Value g = *gradient_[id];
    const std::string name = graph_.node(id).name;
    if (!b_.IsPending(g) && !name.empty()) b_.Name(g.node, "d_" + name);
    Visit(id, g);
  }
  std::vector<NodeId> results;
  for (NodeId id : wrt) {
    const Value zero = b_.UniformLike(0, b_.Of(id));
    const NodeId result = b_.Node(gradient_[id].value_or(zero));
    if (!graph_.node(id).name.empty()) b_.Name(result, "d_" + graph_.node(id).name);
    results.push_back(result);
  }
  return results;
}

void Reverse::Visit(NodeId id, const Value& g) {
  // A copy: appending nodes moves the originals.
  const Node node = graph_.node(id);
  const Value y = b_.Of(id);
  switch (node.op) {
    case Op::kAdd:
      for (size_t i : {0, 1}) {
        if (Wants(node, i)) Accumulate(node, i, g);
      }
      break;
    case Op::kMul:
      for (size_t i : {0, 1}) {
        if (Wants(node, i)) Accumulate(node, i, b_.Mul(g, In(node, 1 - i)));
      }
      break;
    case Op::kNeg:
      Accumulate(node, 0, b_.Neg(g));
      break;
    case Op::kRecip:  // -1 / a^2
      Accumulate(node, 0, b_.Neg(b_.Mul(b_.Mul(g, y), y)));
      break;
    case Op::kMax:
      Max(node, g);
      break;
    case Op::kMod:
      Mod(node, id, g);
      break;
    case Op::kExp2:  // y ln 2; the constant last, where the product with log2 e cancels it
      Accumulate(node, 0, b_.Mul(b_.Mul(g, y), b_.UniformLike(std::numbers::ln2, g)));
      break;
    case Op::kLog2:  // 1 / (a ln 2); the constant first, for the same reason
      Accumulate(node, 0,
                 b_.Mul(b_.Mul(g, b_.UniformLike(std::numbers::log2e, g)), b_.Recip(In(node, 0))));
      break;
    case Op::kSin:
      Accumulate(node, 0, b_.Mul(g, b_.Cos(In(node, 0))));
      break;
    case Op::kSqrt:  // 1 / (2 y)
      Accumulate(node, 0, b_.Mul(b_.Mul(g, b_.UniformLike(0.5, g)), b_.Recip(y)));
      break;
    case Op::kWhere: {
      const Value zero = b_.UniformLike(0, g);
      if (Wants(node, 1)) Accumulate(node, 1, b_.Where(In(node, 0), g, zero));
      if (Wants(node, 2)) Accumulate(node, 2, b_.Where(In(node, 0), zero, g));
      break;
    }
    case Op::kCast:
      Accumulate(node, 0, b_.Cast(g, In(node, 0).dtype));
      break;
    case Op::kReduceSum:
      Accumulate(node, 0, b_.Unreduce(g, node.attr.ints, In(node, 0).shape));
      break;
    case Op::kReduceMax:
      ReduceMax(node, id, g);
      break;
    case Op::kMatmul:
      Matmul(node, g);
      break;
    case Op::kReshape:
      Accumulate(node, 0, b_.Reshape(g, In(node, 0).shape));
      break;
    case Op::kPermute:
      Permute(node, g);
      break;
    case Op::kExpand:
      Expand(node, g);
      break;
    case Op::kPad:
      Pad(node, g);
      break;
    case Op::kSlice:
      Slice(node, g);
      break;
    case Op::kFlip:
      Accumulate(node, 0, b_.Flip(g, node.attr.ints));
      break;
    case Op::kGather:
      Accumulate(node, 0, b_.ScatterAdd(In(node, 1), g, In(node, 0).shape));
      break;
    case Op::kScatterAdd:
      Accumulate(node, 1, b_.Gather(g, In(node, 0)));
      break;
    default:
      break;  // a leaf, or no derivative
  }
}

void Reverse::Max(const Node& node, const Value& g) {
  const Value a = In(node, 0);
  const Value c = In(node, 1);
  const Value less = b_.CmpLt(a, c);
  const Value greater = b_.CmpLt(c, a);
  const Value half = b_.Mul(g, b_.UniformLike(0.5, g));
  const Value zero = b_.UniformLike(0, g);
  if (Wants(node, 0)) Accumulate(node, 0, b_.Where(less, zero, b_.Where(greater, g, half)));
  if (Wants(node, 1)) Accumulate(node, 1, b_.Where(greater, zero, b_.Where(less, g, half)));
}

// mod(a, c) = a - c trunc(a / c), and trunc(a / c) = (a - y) / c is locally constant.
void Reverse::Mod(const Node& node, NodeId id, const Value& g) {
  if (Wants(node, 0)) Accumulate(node, 0, g);
  if (Wants(node, 1)) {
    const Value whole = b_.Add(In(node, 0), b_.Neg(b_.Of(id)));
    Accumulate(node, 1, b_.Neg(b_.Mul(g, b_.Mul(whole, b_.Recip(In(node, 1))))));
  }
}

// The mask multiplies instead of selecting, so that a NaN row (no element equals its maximum: 0/0)
// gets NaN gradients.
void Reverse::ReduceMax(const Node& node, NodeId id, const Value& g) {
  const Value a = In(node, 0);
  const Value greatest = b_.Unreduce(b_.Of(id), node.attr.ints, a.shape);
  const Value mask = b_.Where(b_.CmpNe(a, greatest), b_.UniformLike(0, a), b_.UniformLike(1, a));
  const Value ties = b_.ReduceSum(mask, node.attr.ints);
  const Value share = b_.Mul(g, b_.Recip(ties));
  Accumulate(node, 0, b_.Mul(mask, b_.Unreduce(share, node.attr.ints, a.shape)));
}

void Reverse::Matmul(const Node& node, const Value& g) {
  if (Wants(node, 0)) Accumulate(node, 0, b_.Matmul(g, b_.Transpose(In(node, 1))));
  if (Wants(node, 1)) Accumulate(node, 1, b_.Matmul(b_.Transpose(In(node, 0)), g));
}

void Reverse::Expand(const Node& node, const Value& g) {
  const Shape& from = In(node, 0).shape;
  const size_t shift = node.shape.size() - from.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < node.shape.size(); ++i) {
    if (i < shift || from[i - shift] != node.shape[i]) axes.push_back(static_cast<int64_t>(i));
  }
  Accumulate(node, 0, b_.Reshape(b_.ReduceSum(g, axes), from));
}

void Reverse::Permute(const Node& node, const Value& g) {
  std::vector<int64_t> inverse(node.attr.ints.size());
  for (size_t i = 0; i < inverse.size(); ++i) inverse[node.attr.ints[i]] = static_cast<int64_t>(i);
  Accumulate(node, 0, b_.Permute(g, inverse));
}

void Reverse::Pad(const Node& node, const Value& g) {
  const Shape& from = In(node, 0).shape;
  std::vector<int64_t> ranges;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t before = node.attr.ints[2 * i];
    ranges.insert(ranges.end(), {before, before + from[i], 1});
  }
  Accumulate(node, 0, b_.Slice(g, ranges));
}

// Zeros go back between the elements that a step skipped: each element is padded to a row of
// `step`, the rows are joined, and the zeros after the last element are cut off or completed.
void Reverse::Slice(const Node& node, const Value& g) {
  const Shape& from = In(node, 0).shape;
  Value spread = g;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t step = node.attr.ints[3 * i + 2];
    const int64_t count = spread.shape[i];
    if (step == 1 || count <= 1) continue;
    Shape joined = spread.shape;
    const int64_t outer = NumElements(Shape(joined.begin(), joined.begin() + i));
    const int64_t inner = NumElements(Shape(joined.begin() + i + 1, joined.end()));
    const Value rows = b_.Reshape(spread, {outer, count, 1, inner});
    const Value padded = b_.Pad(rows, {0, 0, 0, 0, 0, step - 1, 0, 0});
    joined[i] = count * step;
    std::vector<int64_t> cut;
    for (int64_t extent : joined) cut.insert(cut.end(), {0, extent, 1});
    cut[3 * i + 1] = (count - 1) * step + 1;
    spread = b_.Slice(b_.Reshape(padded, joined), cut);
  }
  std::vector<int64_t> padding;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t start = node.attr.ints[3 * i];
    padding.insert(padding.end(), {start, from[i] - start - spread.shape[i]});
  }
  Accumulate(node, 0, b_.Pad(spread, padding));
}

}  // namespace

Gradients Differentiate(Graph& graph, NodeId loss, std::span<const NodeId> wrt) {
  const Node& result = graph.node(loss);
  if (!IsFloat(result.dtype) || !result.shape.empty()) {
    throw ShapeError("cannot differentiate '" + result.name + "' " +
                     TypeToString(result.dtype, result.shape) +
                     ": a loss is a float scalar; reduce it with tensor_reduce_mean first");
  }
  for (NodeId id : wrt) {
    if (!IsFloat(graph.node(id).dtype)) {
      throw ShapeError("cannot differentiate with respect to '" + graph.node(id).name + "' of " +
                       std::string(DTypeName(graph.node(id).dtype)) + ": it is not a float");
    }
  }
  Gradients gradients{{}, loss, {wrt.begin(), wrt.end()}};
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [](const Node& node) { return IsDerived(node.op); })) {
    std::vector<NodeId> ids;
    graph = ExpandDerived(graph, ids);
    gradients.loss = ids[loss];
    for (NodeId& id : gradients.wrt) id = ids[id];
  }
  gradients.nodes = Reverse(graph).Run(gradients.loss, gradients.wrt);
  return gradients;
}

}  // namespace l3c::tensor
