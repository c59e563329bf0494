// The text of one op application in L1's spelling, both ways, driven by the op table:
//
//   tensor_matmul(x, w)                  tensor_cast(a, f32)
//   tensor_scale(g, 0.5)                 tensor_const(0.5), tensor_const(3, i32)
//   tensor_reduce_sum(a, axis: 1)        tensor_reduce_max(a, axis: [0, 2])
//   tensor_broadcast(b, [128, 256])      tensor_permute(a, [1, 0])
//   tensor_pad(a, [[0, 1], [2, 2]])      tensor_slice(a, [[0, 10, 1], [2, 8, 2]])
//   tensor_iota([4, 3], i32, axis: 0)    tensor_random(key, [4, 3])
//   tensor_scatter_add(index, u, [9, 4])
//
// How attributes are written is the op's AttrForm. An axis: left out means all axes. f32 is the
// dtype of a constant unless it names another. Printing and building an application again gives
// an equal node: numbers are printed as the shortest text that reads back as the same value.
//
// Text in general is the business of L1's parser, which hands over arguments already parsed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::tensor {

// One parsed argument of an application.
struct Argument {
  enum class Kind : uint8_t { kNode, kNumber, kDType, kList };
  Kind kind = Kind::kNumber;
  std::string keyword;  // "axis" in "axis: 1"; "" for a positional argument
  NodeId node = 0;
  double number = 0;
  DType dtype = DType::kF32;
  std::vector<Argument> list;

  static Argument Node(NodeId id);
  static Argument Number(double value);
  static Argument Type(DType dtype);
  static Argument List(std::vector<Argument> items);
  static Argument Ints(std::span<const int64_t> items);
  Argument Named(std::string name) &&;
};

// "tensor_add(x, b)". `id` must not be an input or an unnamed literal.
std::string PrintApplication(const Graph& graph, NodeId id);

// The same with every operand that is an op written out in its place:
// "tensor_cmplt(tensor_reduce_sum(x), 3.0)". `id` may also be an input, which is its name.
std::string PrintNested(const Graph& graph, NodeId id);

// Appends the application of the op spelled `op` ("tensor_add") to the graph. A number where an
// operand belongs becomes a scalar literal: u64 as the key of tensor_random, else of the dtype of
// the first other operand that is not bool, else f32. Throws ShapeError: no such op, wrong
// arguments, or the op's own rule; unused literals may then be left in the graph.
NodeId BuildApplication(Graph& graph, std::string_view op, std::span<const Argument> arguments,
                        std::string name = {}, support::Span span = {});

// The L1 spelling of every op that can be applied, in table order, for "did you mean".
std::vector<std::string> OpSpellings();

// The shortest text that reads back as `value` of `dtype`: "0.5", "1.0", "1e-45", "-0.0", "inf",
// "-inf", "nan"; integers without a point.
std::string FormatNumber(double value, DType dtype);

}  // namespace l3c::tensor
