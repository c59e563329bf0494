// What extraction chooses from: classes, each with the e-nodes that it can be had by.
//
// Indices are dense. The e-nodes of a class are neighbours; the children of an e-node are classes.
// A view of an e-graph is one (view.h), a graph read from a file is another (serialize.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "egraph/ids.h"

namespace l3c::egraph {

using ClassRef = Id<struct ClassRefTag>;
using ENodeRef = Id<struct ENodeRefTag>;

class NodeGraph {
 public:
  size_t class_count() const { return class_first_.size() - 1; }
  size_t node_count() const { return node_classes_.size(); }

  // E-nodes of a class: consecutive indices [first, first + size).
  ENodeRef FirstNode(ClassRef c) const { return ENodeRef{class_first_[c.index]}; }
  uint32_t NodeCountOf(ClassRef c) const {
    return class_first_[c.index + 1] - class_first_[c.index];
  }
  ClassRef NodeClass(ENodeRef n) const { return node_classes_[n.index]; }
  // In order, repeated where an e-node uses a class twice. Invalid entries are classes without
  // e-nodes.
  std::span<const ClassRef> NodeChildren(ENodeRef n) const {
    return {node_children_.data() + node_first_child_[n.index],
            node_first_child_[n.index + 1] - node_first_child_[n.index]};
  }

 protected:
  std::vector<uint32_t> class_first_{0};
  std::vector<ClassRef> node_classes_;
  std::vector<uint32_t> node_first_child_{0};
  std::vector<ClassRef> node_children_;
};

// A graph built class by class.
class PlainNodeGraph : public NodeGraph {
 public:
  // Opens the next class; the e-nodes added from here on are its own. Its index is the number of
  // classes opened before.
  ClassRef AddClass() {
    class_first_.push_back(class_first_.back());
    return ClassRef{static_cast<uint32_t>(class_first_.size() - 2)};
  }
  // An e-node of the class opened last. Children may be classes that are opened later.
  ENodeRef AddNode(std::span<const ClassRef> children) {
    node_classes_.push_back(ClassRef{static_cast<uint32_t>(class_first_.size() - 2)});
    node_children_.insert(node_children_.end(), children.begin(), children.end());
    node_first_child_.push_back(static_cast<uint32_t>(node_children_.size()));
    return ENodeRef{class_first_.back()++};
  }
};

}  // namespace l3c::egraph
