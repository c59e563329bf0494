// A frozen view of an e-graph, for extraction.
//
// Classes and e-nodes get dense indices: classes by their canonical id, e-nodes class by class,
// in order of declaration of their constructors, then of rows. Rows of functions and relations are
// no e-nodes; read those (analyses) from graph(). The view refers to the graph, which must be
// rebuilt, outlive it and not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/ids.h"

namespace l3c::egraph {

using ClassRef = Id<struct ClassRefTag>;  // a class of a view
using ENodeRef = Id<struct ENodeRefTag>;  // an e-node of a view

class EGraphView {
 public:
  explicit EGraphView(const EGraph& graph);

  const EGraph& graph() const { return *graph_; }
  size_t class_count() const { return class_values_.size(); }
  size_t node_count() const { return node_functions_.size(); }

  // The class of an equality-sort value; invalid when it holds no e-node that can be extracted.
  ClassRef ClassOf(Value class_id) const;
  Value ClassValue(ClassRef c) const { return class_values_[c.index]; }
  SortId ClassSort(ClassRef c) const { return graph_->ClassSort(class_values_[c.index]); }
  // E-nodes of a class: consecutive indices [first, first + size).
  ENodeRef FirstNode(ClassRef c) const { return ENodeRef{class_first_[c.index]}; }
  uint32_t NodeCountOf(ClassRef c) const {
    return class_first_[c.index + 1] - class_first_[c.index];
  }

  FunctionId NodeFunction(ENodeRef n) const { return node_functions_[n.index]; }
  const Function& function(ENodeRef n) const { return graph_->function(NodeFunction(n)); }
  ClassRef NodeClass(ENodeRef n) const { return node_classes_[n.index]; }
  // All arguments, canonical, base values included.
  std::span<const Value> NodeArgs(ENodeRef n) const {
    return {node_args_.data() + node_first_arg_[n.index],
            node_first_arg_[n.index + 1] - node_first_arg_[n.index]};
  }
  // The arguments of equality sorts, in order. Invalid entries are classes without e-nodes.
  std::span<const ClassRef> NodeChildren(ENodeRef n) const {
    return {node_children_.data() + node_first_child_[n.index],
            node_first_child_[n.index + 1] - node_first_child_[n.index]};
  }
  // The rule that created the e-node, kInitial when none did.
  RuleId NodeRule(ENodeRef n) const { return node_rules_[n.index]; }
  // The e-node `f(args)`, invalid when there is none.
  ENodeRef FindNode(FunctionId f, std::span<const Value> args) const;
  // One level as text: `(Add c3 c7)`, `(Num 1)`.
  std::string NodeText(ENodeRef n) const;

 private:
  const EGraph* graph_;
  std::vector<Value> class_values_;
  std::vector<uint32_t> class_first_;
  std::vector<uint32_t> class_of_value_;  // by class id; Value::kNone where none
  std::vector<FunctionId> node_functions_;
  std::vector<ClassRef> node_classes_;
  std::vector<uint32_t> node_first_arg_;
  std::vector<Value> node_args_;
  std::vector<uint32_t> node_first_child_;
  std::vector<ClassRef> node_children_;
  std::vector<RuleId> node_rules_;
};

}  // namespace l3c::egraph
