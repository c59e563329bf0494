#include "layers/l1/naming.h"

#include <algorithm>
#include <map>
#include <vector>

namespace l3c::l1 {

using tensor::NodeId;

bool IsFreshName(const std::string& name) {
  return name.size() > 1 && name[0] == 't' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void NameValues(tensor::Graph& graph, const std::string& suffix, const std::string& scalars) {
  for (const tensor::Output& output : graph.outputs()) {
    const std::string name = output.name + suffix;
    if (IsFreshName(graph.node(output.node).name) && !graph.Find(name)) {
      graph.Rename(output.node, name);
    }
  }
  std::vector<NodeId> first_user(graph.size(), 0);
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    for (NodeId input : graph.node(id).inputs) first_user[input] = id;
  }
  // Users come after what they use, so a pass from the end finds each value's purpose settled.
  std::vector<std::string> purpose(graph.size());
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    const tensor::Node& node = graph.node(id);
    if (!node.name.empty() && !IsFreshName(node.name)) {
      purpose[id] = node.name;
      if (!suffix.empty() && purpose[id].ends_with(suffix)) {
        purpose[id].resize(purpose[id].size() - suffix.size());
      }
    } else if (first_user[id] != 0) {
      purpose[id] = purpose[first_user[id]];
    }
  }
  std::map<std::string, int> count;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const tensor::Node& node = graph.node(id);
    if (node.name.empty() || !IsFreshName(node.name)) continue;
    std::string base = purpose[id];
    if (node.shape.empty() && !scalars.empty()) base = scalars;
    std::string op = tensor::Definition(node.op).l1_name;
    if (op.starts_with("tensor_")) op = op.substr(7);
    base += (base.empty() ? "" : "_") + op;
    if (node.op == tensor::Op::kConst) base = op;  // often shared by what else differs
    std::string name;
    do {
      const int n = ++count[base];
      name = n == 1 ? base : base + "_" + std::to_string(n);
    } while (graph.Find(name));
    graph.Rename(id, name);
  }
}

}  // namespace l3c::l1
