#include "egraph/view.h"

#include <algorithm>
#include <stdexcept>

namespace l3c::egraph {

EGraphView::EGraphView(const EGraph& graph) : graph_(&graph), version_(graph.version()) {
  // How many e-nodes each class has; then classes, then e-nodes placed by counting sort.
  std::vector<uint32_t> counts;
  const auto for_each_node = [&](auto&& fn) {
    for (uint32_t f = 0; f < graph.function_count(); ++f) {
      const Function& function = graph.function(FunctionId{f});
      if (function.kind != FunctionKind::kConstructor || !function.extractable) continue;
      graph.ForEachRow(FunctionId{f}, [&](const Row& row) {
        if (!row.subsumed()) fn(FunctionId{f}, function, row);
      });
    }
  };
  for_each_node([&](FunctionId, const Function&, const Row& row) {
    const uint32_t id = graph.Find(row.output()).bits;
    if (id >= counts.size()) counts.resize(id + 1, 0);
    ++counts[id];
  });
  class_of_value_.assign(counts.size(), Value::kNone);
  for (uint32_t id = 0; id < counts.size(); ++id) {
    if (counts[id] == 0) continue;
    class_of_value_[id] = static_cast<uint32_t>(class_values_.size());
    class_values_.push_back(Value{id});
    class_first_.push_back(class_first_.back() + counts[id]);
  }

  const uint32_t nodes = class_first_.back();
  node_functions_.resize(nodes);
  node_classes_.resize(nodes);
  node_rules_.resize(nodes);
  std::vector<uint32_t> next(class_first_.begin(), class_first_.end() - 1);
  std::vector<uint32_t> arg_counts(nodes + 1, 0), child_counts(nodes + 1, 0);
  std::vector<uint32_t> placed;  // e-node of each row visited
  placed.reserve(nodes);
  for_each_node([&](FunctionId f, const Function& function, const Row& row) {
    const uint32_t c = class_of_value_[graph.Find(row.output()).bits];
    const uint32_t n = next[c]++;
    placed.push_back(n);
    node_functions_[n] = f;
    node_classes_[n] = ClassRef{c};
    node_rules_[n] = row.rule();
    arg_counts[n + 1] = row.size();
    for (SortId input : function.inputs) child_counts[n + 1] += graph.sort(input).is_equality;
  });
  for (uint32_t n = 0; n < nodes; ++n) {
    arg_counts[n + 1] += arg_counts[n];
    child_counts[n + 1] += child_counts[n];
  }
  node_first_arg_ = std::move(arg_counts);
  node_first_child_ = std::move(child_counts);
  node_args_.resize(node_first_arg_.back());
  node_children_.resize(node_first_child_.back());
  size_t visited = 0;
  for_each_node([&](FunctionId, const Function& function, const Row& row) {
    const uint32_t n = placed[visited++];
    uint32_t child = node_first_child_[n];
    for (uint32_t i = 0; i < row.size(); ++i) {
      const Value v = graph.Canonical(function.inputs[i], row.arg(i));
      node_args_[node_first_arg_[n] + i] = v;
      if (graph.sort(function.inputs[i]).is_equality) node_children_[child++] = ClassOf(v);
    }
  });
}

void EGraphView::ThrowStale() {
  throw std::logic_error("an e-graph has changed while a view of it was in use");
}

ClassRef EGraphView::ClassOf(Value class_id) const {
  const uint32_t id = graph().Find(class_id).bits;
  if (id >= class_of_value_.size()) return ClassRef{};
  return ClassRef{class_of_value_[id]};
}

ENodeRef EGraphView::FindNode(FunctionId f, std::span<const Value> args) const {
  const std::optional<Value> output = graph().Lookup(f, args);
  if (!output) return ENodeRef{};
  const ClassRef c = ClassOf(*output);
  if (!c.valid()) return ENodeRef{};
  const Function& function = graph().function(f);
  for (uint32_t n = class_first_[c.index]; n < class_first_[c.index + 1]; ++n) {
    if (node_functions_[n] != f) continue;
    const std::span<const Value> own = NodeArgs(ENodeRef{n});
    size_t i = 0;
    while (i < own.size() && own[i] == graph().Canonical(function.inputs[i], args[i])) ++i;
    if (i == own.size()) return ENodeRef{n};
  }
  return ENodeRef{};
}

std::string EGraphView::NodeText(ENodeRef n) const {
  const Function& f = function(n);
  std::string text = "(" + f.name;
  const std::span<const Value> args = NodeArgs(n);
  for (size_t i = 0; i < args.size(); ++i) {
    text += ' ';
    text += graph().DescribeValue(f.inputs[i], args[i]);
  }
  return text + ')';
}

}  // namespace l3c::egraph
