// The work of a tensor graph, as far as no machine is known.
#pragma once

#include "layers/tensor/graph.h"

namespace l3c::l1 {

// Arithmetic of a primitive op, and of a graph: a multiply-add counts two, another elementwise op
// one.
double NodeFlops(const tensor::Graph& graph, tensor::NodeId id);
double CountFlops(const tensor::Graph& graph);

// The most bytes of values that live at once, computed in the order of the nodes: results of
// contractions, reductions and indexing, from where they are made to the last use. Elementwise and
// movement ops are taken as parts of what they feed; inputs and outputs lie elsewhere.
double PeakBytes(const tensor::Graph& graph);

}  // namespace l3c::l1
