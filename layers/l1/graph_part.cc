#include "layers/l1/graph_part.h"

#include <utility>

namespace l3c::l1 {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

namespace {

// Whether the constant `id` can be written as a number in its user, which then gives it the dtype
// of the user's first other operand.
bool IsLiteralOf(const Graph& graph, NodeId id, const tensor::Node& user) {
  const tensor::Node& node = graph.node(id);
  if (node.op != Op::kConst) return false;
  if (user.op == Op::kExpand) return node.dtype == DType::kF32;
  const bool scalar = user.shape.empty() || tensor::Definition(user.op).name == "scale";
  if (user.inputs.size() != 2 || !scalar) return false;
  const NodeId other = user.inputs[0] == id ? user.inputs[1] : user.inputs[0];
  return graph.node(other).op != Op::kConst && graph.node(other).dtype == node.dtype;
}

}  // namespace

Graph Extract(const Graph& from, const GraphPart& part) {
  std::vector<bool> needed(from.size());
  for (const tensor::Output& output : part.outputs) needed[output.node] = true;
  for (NodeId id = static_cast<NodeId>(from.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (NodeId input : from.node(id).inputs) needed[input] = true;
  }
  // A constant keeps its node where some use needs it.
  std::vector<bool> keep(from.size());
  for (const tensor::Output& output : part.outputs) keep[output.node] = true;
  for (NodeId id = 0; id < from.size(); ++id) {
    if (!needed[id]) continue;
    if (from.node(id).op != Op::kConst) keep[id] = true;
    for (NodeId input : from.node(id).inputs) {
      if (!IsLiteralOf(from, input, from.node(id))) keep[input] = true;
    }
  }
  Graph to;
  std::vector<NodeId> ids(from.size());
  const auto add_input = [&](NodeId id) {
    const tensor::Node& node = from.node(id);
    ids[id] = to.AddInput(node.name, node.dtype, node.shape, node.span);
  };
  for (NodeId id : part.arguments) add_input(id);
  for (NodeId id : part.state) {
    if (needed[id]) add_input(id);
  }
  for (NodeId id = 0; id < from.size(); ++id) {
    const tensor::Node& node = from.node(id);
    if (!needed[id]) continue;
    if (node.op == Op::kInput) {
      if (part.ones == id) {
        ids[id] = to.Expand(to.AddLiteral(1, node.dtype), node.shape, node.name);
      }
      continue;
    }
    if (!keep[id]) continue;
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) {
      const tensor::Node& operand = from.node(input);
      inputs.push_back(IsLiteralOf(from, input, node)
                           ? to.AddLiteral(operand.attr.scalar, operand.dtype)
                           : ids[input]);
    }
    ids[id] = to.Add(node.op, std::move(inputs), node.attr, node.name, node.span);
  }
  for (const tensor::Output& output : part.outputs) to.AddOutput(output.name, ids[output.node]);
  return to;
}

}  // namespace l3c::l1
