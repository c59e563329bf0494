// Builds the derivative part of a graph, for reverse and forward differentiation alike.
//
// A derivative is a Value: either a node, or a tensor whose elements are all the same known number
// and which needs no node until something asks for one. So the seed, a mean's 1/n and the reduction
// of ones cost nothing, and a product with 1 is its other factor. Only simplifications that change
// no bit (NaN and infinities included) are made:
//
//   1 * x = x    -(-x) = x    (-x) * y = -(x * y)    c * d and c + d of known numbers
//   the sum of n equal powers of two
//   movement of a known number, permute of permute, reshape of reshape, identities of both
//
// with one exception: (x * c) * d = x where c * d rounds to 1, which makes the derivative of
// exp(x) = exp2(x log2 e) the exponential itself instead of exp2's, times ln 2, times log2 e. So
// that nothing is written in vain, a known factor (-1: a negation) and a reshape stay pending until
// the value is used.
//
// Equal applications are one node, and forward nodes are reused.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "layers/tensor/graph.h"

namespace l3c::tensor {

struct Value {
  static constexpr NodeId kNoNode = ~NodeId{0};

  DType dtype = DType::kF32;
  Shape shape;                    // the node's may differ: a reshape is then pending
  std::optional<double> uniform;  // every element, when known
  NodeId node = kNoNode;          // always there when the elements are not known
  std::optional<double> factor;   // pending: the value is node * factor
};

class GradientBuilder {
 public:
  // `graph` holds primitives only; nodes are appended to it.
  explicit GradientBuilder(Graph& graph);

  const Graph& graph() const { return graph_; }

  Value Of(NodeId id) const;  // a node, known to be uniform where its definition says so
  Value Uniform(double value, DType dtype, Shape shape) const;
  Value UniformLike(double value, const Value& like) const;
  NodeId Node(const Value& value);           // appends what is missing
  bool IsPending(const Value& value) const;  // would Node() append, or find, another node?
  // Gives a node made here the name, unless it has been given one or the name is taken.
  void Name(NodeId id, const std::string& name);

  Value Add(const Value& a, const Value& b);
  Value Mul(const Value& a, const Value& b);
  Value Neg(const Value& a);
  Value Recip(const Value& a);
  Value Unary(Op op, const Value& a);
  Value Cos(const Value& a);  // the expansion of the derived op
  Value CmpLt(const Value& a, const Value& b);
  Value CmpNe(const Value& a, const Value& b);
  Value Where(const Value& condition, const Value& a, const Value& b);
  Value Cast(const Value& a, DType dtype);
  Value Matmul(const Value& a, const Value& b);
  Value ReduceSum(const Value& a, const std::vector<int64_t>& axes);
  Value Reshape(const Value& a, const Shape& shape);
  Value Expand(const Value& a, const Shape& shape);
  Value Permute(const Value& a, const std::vector<int64_t>& order);
  Value Transpose(const Value& a);
  Value Pad(const Value& a, const std::vector<int64_t>& padding);
  Value Slice(const Value& a, const std::vector<int64_t>& ranges);
  Value Flip(const Value& a, const std::vector<int64_t>& axes);
  Value Gather(const Value& a, const Value& index);
  Value ScatterAdd(const Value& index, const Value& updates, const Shape& shape);

  // The reduced value repeated along the reduced axes again, to `shape`.
  Value Unreduce(const Value& reduced, const std::vector<int64_t>& axes, const Shape& shape);

 private:
  using Key = std::tuple<Op, std::vector<NodeId>, std::vector<int64_t>, int64_t, uint64_t, DType>;

  static Key KeyOf(Op op, const std::vector<NodeId>& inputs, const Attributes& attr);
  Value MulFactor(const Value& a, double factor);  // a is not uniform
  Value Apply(Op op, std::vector<NodeId> inputs, Attributes attr = {});
  Value ApplyInts(Op op, std::vector<NodeId> inputs, std::vector<int64_t> ints);
  void Record(NodeId id);

  Graph& graph_;
  const NodeId first_;                          // nodes from here on are ours
  std::vector<std::optional<double>> uniform_;  // by node
  std::vector<bool> named_;                     // by node: has been given a name here
  std::map<Key, NodeId> applications_;
};

}  // namespace l3c::tensor
