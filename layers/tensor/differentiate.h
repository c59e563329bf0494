// Reverse-mode differentiation of a graph, into explicit ops of the same graph.
//
// Derivatives at points where there is none, or more than one, are these: max gives each of two
// equal operands half, so that |a| has slope 0 at 0; reduce_max shares evenly among the greatest;
// comparisons, casts to integers, bitcasts and indices have none. Where the forward value is NaN,
// so is what depends on it.
#pragma once

#include <span>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::tensor {

struct Gradients {
  std::vector<NodeId> nodes;  // d loss / d wrt[i], of wrt[i]'s dtype and shape; zeros if unused
  NodeId loss = 0;            // the loss and the wrt in the graph as it now is
  std::vector<NodeId> wrt;
};

// Appends the backward pass of `loss`, a float scalar, to the graph as it stands: no rewrite comes
// before, so that none can change a gradient. The graph holds primitives only afterwards: if it
// has derived ops, they are expanded first, and ids change (see Gradients; outputs follow).
//
// The gradient of a node NAME that is a node of its own is called d_NAME where that is free.
// Contributions to a gradient are added in descending order of the users. Throws ShapeError when
// the loss is not a float scalar or a wrt is not a float.
Gradients Differentiate(Graph& graph, NodeId loss, std::span<const NodeId> wrt);

}  // namespace l3c::tensor
