#include "layers/l1/graph_work.h"

#include <algorithm>
#include <vector>

namespace l3c::l1 {

using tensor::Graph;
using tensor::NodeId;
using tensor::OpClass;

double NodeFlops(const Graph& graph, NodeId id) {
  const tensor::Node& node = graph.node(id);
  const double elements = static_cast<double>(tensor::NumElements(node.shape));
  switch (tensor::Definition(node.op).op_class) {
    case OpClass::kElementwise:
    case OpClass::kIndexing:
      return elements;
    case OpClass::kReduction:
      return static_cast<double>(tensor::NumElements(graph.node(node.inputs[0]).shape));
    case OpClass::kContraction:
      return 2 * elements * static_cast<double>(graph.node(node.inputs[0]).shape.back());
    case OpClass::kLeaf:
    case OpClass::kMovement:
      return 0;
  }
  return 0;
}

double CountFlops(const Graph& derived) {
  const Graph graph = tensor::ExpandDerived(derived);
  double flops = 0;
  for (NodeId id = 0; id < graph.size(); ++id) flops += NodeFlops(graph, id);
  return flops;
}

double PeakBytes(const Graph& derived) {
  const Graph graph = tensor::ExpandDerived(derived);
  const auto stored = [&](NodeId id) {
    const OpClass op_class = tensor::Definition(graph.node(id).op).op_class;
    return op_class == OpClass::kContraction || op_class == OpClass::kReduction ||
           op_class == OpClass::kIndexing;
  };
  // Where a value is last read, by itself or by what is computed inside its reader.
  std::vector<NodeId> last(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) last[id] = id;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    const NodeId at = stored(id) ? id : last[id];
    for (NodeId input : graph.node(id).inputs) last[input] = std::max(last[input], at);
  }
  std::vector<bool> output(graph.size());
  for (const tensor::Output& o : graph.outputs()) output[o.node] = true;
  std::vector<double> ends(graph.size() + 1);  // bytes that die before the node
  double live = 0, most = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    live -= ends[id];
    if (!stored(id) || output[id]) continue;
    const tensor::Node& node = graph.node(id);
    const double bytes = static_cast<double>(tensor::NumElements(node.shape)) *
                         static_cast<double>(tensor::SizeOf(node.dtype));
    live += bytes;
    most = std::max(most, live);
    ends[last[id] + 1] += bytes;
  }
  return most;
}

}  // namespace l3c::l1
