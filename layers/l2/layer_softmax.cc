// softmax: eˣ/Σeˣ over the last axis, with the row's maximum subtracted first. The maximum is a
// constant to differentiation: the result does not depend on it.
#include <string>

#include "layers/l2/layers.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId Spread(Graph& graph, NodeId reduced, const Shape& shape) {
  Shape kept = shape;
  kept.back() = 1;
  return graph.Expand(graph.Reshape(reduced, kept), shape);
}

NodeId Shifted(Graph& graph, NodeId x) {
  const Shape shape = graph.node(x).shape;
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  const NodeId top = graph.Unary(*tensor::FindOp("stop_gradient"), graph.ReduceMax(x, {last}));
  return graph.Binary(*tensor::FindOp("sub"), x, Spread(graph, top, shape));
}

NodeId SoftmaxExpand(Graph& graph, const Form&, std::span<const NodeId> operands,
                     std::span<const NodeId>) {
  const Shape shape = graph.node(operands[0]).shape;
  const NodeId e = graph.Unary(*tensor::FindOp("exp"), Shifted(graph, operands[0]));
  const NodeId sum = graph.ReduceSum(e, {static_cast<int64_t>(shape.size()) - 1});
  return graph.Binary(Op::kMul, e, Spread(graph, graph.Unary(Op::kRecip, sum), shape));
}

NodeId LogSoftmaxExpand(Graph& graph, const Form&, std::span<const NodeId> operands,
                        std::span<const NodeId>) {
  const Shape shape = graph.node(operands[0]).shape;
  const NodeId shifted = Shifted(graph, operands[0]);
  const NodeId e = graph.Unary(*tensor::FindOp("exp"), shifted);
  const NodeId sum = graph.ReduceSum(e, {static_cast<int64_t>(shape.size()) - 1});
  const NodeId log = graph.Unary(*tensor::FindOp("log"), sum);
  return graph.Binary(*tensor::FindOp("sub"), shifted, Spread(graph, log, shape));
}

}  // namespace

std::vector<LayerEntry> SoftmaxLayers() {
  LayerEntry softmax;
  softmax.form = {"softmax", {}, "a distribution over the last axis: eˣ/Σeˣ"};
  softmax.shape = [](const Form&, std::span<const Shape> operands,
                     std::string* error) -> std::optional<Shape> {
    if (operands[0].empty()) {
      *error = "softmax needs an axis; the sample is a scalar";
      return std::nullopt;
    }
    return operands[0];
  };
  softmax.expand = SoftmaxExpand;
  softmax.expand_log = LogSoftmaxExpand;
  return {softmax};
}

}  // namespace l3c::l2
