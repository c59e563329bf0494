// A frozen view of an e-graph, for extraction.
//
// Classes and e-nodes get dense indices: classes by their canonical id, e-nodes class by class,
// in order of declaration of their constructors, then of rows. The children of an e-node are its
// arguments of equality sorts. Rows of functions and relations are no e-nodes; read those
// (analyses) from graph().
//
// Classes and e-nodes are a copy, but what they are called in the graph is not: the view refers to
// the graph, which must be rebuilt and outlive it. Once a row, a class or a union has been added or
// taken away, every question that the graph has a part in throws std::logic_error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/node_graph.h"
#include "egraph/ids.h"

namespace l3c::egraph {

class EGraphView : public NodeGraph {
 public:
  explicit EGraphView(const EGraph& graph);

  const EGraph& graph() const {
    if (graph_->version() != version_) [[unlikely]]
      ThrowStale();
    return *graph_;
  }

  // The class of an equality-sort value; invalid when it holds no e-node that can be extracted.
  ClassRef ClassOf(Value class_id) const;
  Value ClassValue(ClassRef c) const { return class_values_[c.index]; }
  SortId ClassSort(ClassRef c) const { return graph().ClassSort(class_values_[c.index]); }

  FunctionId NodeFunction(ENodeRef n) const { return node_functions_[n.index]; }
  const Function& function(ENodeRef n) const { return graph().function(NodeFunction(n)); }
  // All arguments, canonical, base values included.
  std::span<const Value> NodeArgs(ENodeRef n) const {
    return {node_args_.data() + node_first_arg_[n.index],
            node_first_arg_[n.index + 1] - node_first_arg_[n.index]};
  }
  // The rule that created the e-node, kInitial when none did.
  RuleId NodeRule(ENodeRef n) const { return node_rules_[n.index]; }
  // The e-node `f(args)`, invalid when there is none.
  ENodeRef FindNode(FunctionId f, std::span<const Value> args) const;
  // One level as text: `(Add c3 c7)`, `(Num 1)`.
  std::string NodeText(ENodeRef n) const;

 private:
  [[noreturn]] static void ThrowStale();

  const EGraph* graph_;
  uint64_t version_;
  std::vector<Value> class_values_;
  std::vector<uint32_t> class_of_value_;  // by class id; Value::kNone where none
  std::vector<FunctionId> node_functions_;
  std::vector<uint32_t> node_first_arg_;
  std::vector<Value> node_args_;
  std::vector<RuleId> node_rules_;
};

}  // namespace l3c::egraph
