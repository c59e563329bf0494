#include "layers/tensor/forward.h"

#include <algorithm>
#include <numbers>
#include <optional>

#include "layers/tensor/gradient_builder.h"
#include "layers/tensor/shape_rules.h"

// One Jacobian-vector product an op. An operand that does not move has no tangent, and costs
// nothing.

namespace l3c::tensor {
namespace {

using Tangent = std::optional<Value>;

class Forward {
 public:
  explicit Forward(Graph& graph) : graph_(graph), b_(graph) {}

  std::vector<NodeId> Run(std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                          std::span<const NodeId> directions);

 private:
  Tangent Visit(NodeId id);
  Tangent Max(const Node& node, const Tangent& ta, const Tangent& tb);
  Tangent ReduceMax(const Node& node, const Value& y, const Value& t);

  Value In(const Node& node, size_t i) const { return b_.Of(node.inputs[i]); }
  Tangent Sum(const Tangent& a, const Tangent& b) {
    if (a && b) return b_.Add(*a, *b);
    return a ? a : b;
  }

  Graph& graph_;
  GradientBuilder b_;
  std::vector<Tangent> tangent_;  // by forward node
};

std::vector<NodeId> Forward::Run(std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                                 std::span<const NodeId> directions) {
  const NodeId forward_size = static_cast<NodeId>(graph_.size());
  tangent_.assign(forward_size, std::nullopt);
  std::vector<bool> seeded(forward_size);
  for (size_t i = 0; i < wrt.size(); ++i) {
    seeded[wrt[i]] = true;
    tangent_[wrt[i]] = Sum(tangent_[wrt[i]], b_.Of(directions[i]));
  }
  // Only what the outputs are computed from: a graph may hold the derivatives of earlier calls.
  std::vector<bool> needed(forward_size);
  for (NodeId id : outputs) needed[id] = true;
  for (NodeId id = forward_size; id-- > 0;) {
    if (!needed[id]) continue;
    for (NodeId input : graph_.node(id).inputs) needed[input] = true;
  }
  for (NodeId id = 0; id < forward_size; ++id) {
    if (!needed[id] || !IsFloat(graph_.node(id).dtype)) continue;
    // A node that is moved itself also moves with its operands.
    const Tangent through = Visit(id);
    tangent_[id] = seeded[id] ? Sum(through, tangent_[id]) : through;
  }
  std::vector<NodeId> results;
  for (NodeId id : outputs) {
    results.push_back(b_.Node(tangent_[id].value_or(b_.UniformLike(0, b_.Of(id)))));
  }
  return results;
}

Tangent Forward::Visit(NodeId id) {
  // A copy: appending nodes moves the originals.
  const Node node = graph_.node(id);
  const Value y = b_.Of(id);
  const auto tangent = [&](size_t i) {
    return i < node.inputs.size() ? tangent_[node.inputs[i]] : Tangent();
  };
  if (!tangent(0) && !tangent(1) && !tangent(2)) return std::nullopt;
  // The operand that moves, for the ops where it can only be one.
  const Tangent t = tangent(0);
  switch (node.op) {
    case Op::kAdd:
      return Sum(tangent(0), tangent(1));
    case Op::kMul: {
      Tangent left;
      Tangent right;
      if (tangent(0)) left = b_.Mul(*tangent(0), In(node, 1));
      if (tangent(1)) right = b_.Mul(*tangent(1), In(node, 0));
      return Sum(left, right);
    }
    case Op::kNeg:
      return b_.Neg(*t);
    case Op::kRecip:
      return b_.Neg(b_.Mul(b_.Mul(*t, y), y));
    case Op::kMax:
      return Max(node, tangent(0), tangent(1));
    case Op::kMod: {  // see the rule of reverse mode
      Tangent through;
      if (tangent(1)) {
        const Value whole = b_.Add(In(node, 0), b_.Neg(y));
        through = b_.Neg(b_.Mul(*tangent(1), b_.Mul(whole, b_.Recip(In(node, 1)))));
      }
      return Sum(tangent(0), through);
    }
    case Op::kExp2:
      return b_.Mul(b_.Mul(*t, b_.UniformLike(std::numbers::ln2, y)), y);
    case Op::kLog2:
      return b_.Mul(b_.Mul(*t, b_.Recip(In(node, 0))), b_.UniformLike(std::numbers::log2e, y));
    case Op::kSin:
      return b_.Mul(*t, b_.Cos(In(node, 0)));
    case Op::kSqrt:
      return b_.Mul(b_.Mul(*t, b_.UniformLike(0.5, y)), b_.Recip(y));
    case Op::kWhere: {
      const Value zero = b_.UniformLike(0, y);
      return b_.Where(In(node, 0), tangent(1).value_or(zero), tangent(2).value_or(zero));
    }
    case Op::kCast:
      return b_.Cast(*t, node.dtype);
    case Op::kReduceSum:
      return b_.ReduceSum(*t, node.attr.ints);
    case Op::kReduceMax:
      return ReduceMax(node, y, *t);
    case Op::kMatmul: {
      Tangent left;
      Tangent right;
      if (tangent(0)) left = b_.Matmul(*tangent(0), In(node, 1));
      if (tangent(1)) right = b_.Matmul(In(node, 0), *tangent(1));
      return Sum(left, right);
    }
    case Op::kReshape:
      return b_.Reshape(*t, node.shape);
    case Op::kPermute:
      return b_.Permute(*t, node.attr.ints);
    case Op::kExpand:
      return b_.Expand(*t, node.shape);
    case Op::kPad:
      return b_.Pad(*t, node.attr.ints);
    case Op::kSlice:
      return b_.Slice(*t, node.attr.ints);
    case Op::kFlip:
      return b_.Flip(*t, node.attr.ints);
    case Op::kGather:
      return b_.Gather(*t, In(node, 1));
    case Op::kScatterAdd:
      return b_.ScatterAdd(In(node, 0), *tangent(1), node.shape);
    default:
      return std::nullopt;  // no derivative
  }
}

Tangent Forward::Max(const Node& node, const Tangent& ta, const Tangent& tb) {
  const Value a = In(node, 0);
  const Value b = In(node, 1);
  const Value zero = b_.UniformLike(0, a);
  const Value left = ta.value_or(zero);
  const Value right = tb.value_or(zero);
  const Tangent sum = Sum(ta, tb);
  const Value half = b_.Mul(*sum, b_.UniformLike(0.5, a));
  return b_.Where(b_.CmpLt(a, b), right, b_.Where(b_.CmpLt(b, a), left, half));
}

Tangent Forward::ReduceMax(const Node& node, const Value& y, const Value& t) {
  const Value a = In(node, 0);
  const Value greatest = b_.Unreduce(y, node.attr.ints, a.shape);
  const Value mask = b_.Where(b_.CmpNe(a, greatest), b_.UniformLike(0, a), b_.UniformLike(1, a));
  const Value ties = b_.ReduceSum(mask, node.attr.ints);
  return b_.Mul(b_.ReduceSum(b_.Mul(mask, t), node.attr.ints), b_.Recip(ties));
}

}  // namespace

Tangents ForwardDifferentiate(Graph& graph, std::span<const NodeId> outputs,
                              std::span<const NodeId> wrt, std::span<const NodeId> directions) {
  if (wrt.size() != directions.size()) {
    throw ShapeError("forward differentiation needs one direction for each input that moves");
  }
  for (size_t i = 0; i < wrt.size(); ++i) {
    const Node& moved = graph.node(wrt[i]);
    const Node& direction = graph.node(directions[i]);
    if (!IsFloat(moved.dtype) || moved.dtype != direction.dtype || moved.shape != direction.shape) {
      throw ShapeError("'" + moved.name + "' " + TypeToString(moved.dtype, moved.shape) +
                       " cannot move in the direction '" + direction.name + "' " +
                       TypeToString(direction.dtype, direction.shape) +
                       ": both must be floats of one shape");
    }
  }
  Tangents tangents{{},
                    {outputs.begin(), outputs.end()},
                    {wrt.begin(), wrt.end()},
                    {directions.begin(), directions.end()}};
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [](const Node& node) { return IsDerived(node.op); })) {
    std::vector<NodeId> ids;
    graph = ExpandDerived(graph, ids);
    for (auto* list : {&tangents.outputs, &tangents.wrt, &tangents.directions}) {
      for (NodeId& id : *list) id = ids[id];
    }
  }
  tangents.nodes = Forward(graph).Run(tangents.outputs, tangents.wrt, tangents.directions);
  return tangents;
}

}  // namespace l3c::tensor
