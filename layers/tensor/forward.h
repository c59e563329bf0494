// Forward-mode differentiation (Jacobian-vector products), into explicit ops of the same graph.
#pragma once

#include <span>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::tensor {

struct Tangents {
  std::vector<NodeId> nodes;  // of outputs[i], its dtype and shape; zeros where nothing moves it
  // What the arguments are in the graph as it now is.
  std::vector<NodeId> outputs;
  std::vector<NodeId> wrt;
  std::vector<NodeId> directions;
};

// Appends, for every node of `outputs` (floats), its derivative in the direction in which wrt[i]
// moves by directions[i], a node of the same dtype and shape. Derived ops are expanded and ids
// change as in Differentiate; the derivatives at kinks are the same too.
Tangents ForwardDifferentiate(Graph& graph, std::span<const NodeId> outputs,
                              std::span<const NodeId> wrt, std::span<const NodeId> directions);

}  // namespace l3c::tensor
