// A part of a tensor graph as a graph of its own.
#pragma once

#include <optional>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::l1 {

// The part of a graph that some outputs need, with its inputs in a given order. An input that is to
// be `ones` becomes a constant. A scalar constant becomes a literal in each user that can be
// written so, made just before the user: that is where the parser makes it, and so a program that
// is read back from its text is the same node by node.
struct GraphPart {
  std::vector<tensor::NodeId> arguments;  // stay inputs, needed or not
  std::vector<tensor::NodeId> state;      // stay inputs where needed
  std::vector<tensor::Output> outputs;
  std::optional<tensor::NodeId> ones;
};

tensor::Graph Extract(const tensor::Graph& from, const GraphPart& part);

}  // namespace l3c::l1
