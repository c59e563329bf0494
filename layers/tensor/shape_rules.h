// The shape and dtype rule of every op. Used when a graph is built; nothing else needs it.
#pragma once

#include "layers/tensor/graph.h"

namespace l3c::tensor {

// Checks node.inputs, which are nodes of `graph`, against the rule of node.op, and sets node.dtype
// and node.shape. Normalises node.attr: negative axes count from the end, axes are sorted, a
// constant's value is rounded to its dtype. The rule of a derived op is that of its expansion.
// Throws ShapeError, with a message that names op, operands and the way out.
void InferNode(const Graph& graph, Node& node);

// "f32[128, 256]".
std::string TypeToString(DType dtype, const Shape& shape);

// `value` as `dtype` holds it: rounded to f32, or unchanged. Integers are the caller's business.
double RoundToDType(double value, DType dtype);

}  // namespace l3c::tensor
