// Runs a tensor graph, one op at a time: the meaning of the op set, and the oracle that every
// backend and every rewrite rule is tested against. Plain loops; a graph of MNIST size takes
// milliseconds to tenths of a second.
#pragma once

#include <span>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::tensor {

// How floating-point elements are computed.
enum class Precision : uint8_t {
  kOracle,    // all in f64: f32 nodes are not rounded, so that a kernel's own error shows
  kOwnDType,  // each f32 element is the f64 result of its op, rounded once; sums and matmuls
              // accumulate in f64
};

// A tensor's elements, row-major. Floats live in `floats`, every other dtype in `ints` (bool as 0
// and 1, u64 as its bits).
struct Array {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  static Array Floats(DType dtype, Shape shape, std::vector<double> values);
  static Array Ints(DType dtype, Shape shape, std::vector<int64_t> values);
  // Zeros.
  static Array Zeros(DType dtype, Shape shape);
};

// The values of `nodes`, given those of the graph's inputs in declaration order. Derived ops are
// expanded. Throws ShapeError when an input has another dtype or shape than declared, or a node
// more than 2^28 elements.
std::vector<Array> EvaluateNodes(const Graph& graph, std::span<const Array> inputs,
                                 std::span<const NodeId> nodes, Precision precision);

// The values of the graph's outputs, in declaration order.
std::vector<Array> Evaluate(const Graph& graph, std::span<const Array> inputs, Precision precision);

}  // namespace l3c::tensor
