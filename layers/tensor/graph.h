// A tensor program: a DAG of ops in topological order (operands before users), with named inputs
// and outputs. It is the meaning of a tensor_graph or of an actor's handler at L1, and what L0's
// kernels are made from. Building a node checks its shapes and dtypes; a violation throws
// ShapeError, which parsers turn into a diagnostic at the user's line.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "layers/support/source.h"
#include "layers/tensor/dtype.h"
#include "layers/tensor/op.h"

namespace l3c::tensor {

class ShapeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Node {
  Op op = Op::kInput;
  std::vector<NodeId> inputs;
  Attributes attr;
  DType dtype = DType::kF32;
  Shape shape;
  std::string name;    // the `let` name; unique in the graph; "" for an unnamed literal
  support::Span span;  // where the user wrote it
};

struct Output {
  std::string name;
  NodeId node = 0;
};

class Graph {
 public:
  NodeId AddInput(std::string name, DType dtype, Shape shape, support::Span span = {});
  // Infers dtype and shape from the op's rule and normalises the attributes: negative axes count
  // from the end, axes are sorted, a constant is rounded to its dtype. An empty name is replaced
  // by a fresh "tN", where N is the new node's id or the next number that is free.
  NodeId Add(Op op, std::vector<NodeId> inputs, Attributes attr = {}, std::string name = {},
             support::Span span = {});
  // A number written in place of an operand, as in tensor_scale(g, 0.5): an unnamed constant.
  NodeId AddLiteral(double value, DType dtype, support::Span span = {});
  void AddOutput(std::string name, NodeId node);

  const Node& node(NodeId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<NodeId>& inputs() const { return inputs_; }    // in declaration order
  const std::vector<Output>& outputs() const { return outputs_; }  // in declaration order
  std::optional<NodeId> Find(std::string_view name) const;
  void Rename(NodeId id, std::string name);

  // Sugar used by lowerings; each appends one node (Const: one scalar; Full: scalar + expand).
  NodeId Const(double value, DType dtype = DType::kF32);
  NodeId Full(double value, Shape shape, DType dtype = DType::kF32);
  NodeId Unary(Op op, NodeId a, std::string name = {}) { return Add(op, {a}, {}, std::move(name)); }
  NodeId Binary(Op op, NodeId a, NodeId b, std::string name = {}) {
    return Add(op, {a, b}, {}, std::move(name));
  }
  NodeId Reshape(NodeId a, Shape shape, std::string name = {});
  NodeId Expand(NodeId a, Shape shape, std::string name = {});
  NodeId Permute(NodeId a, std::vector<int64_t> order, std::string name = {});
  NodeId Transpose(NodeId a, std::string name = {});  // swaps the last two axes
  NodeId ReduceSum(NodeId a, std::vector<int64_t> axes, std::string name = {});
  NodeId ReduceMax(NodeId a, std::vector<int64_t> axes, std::string name = {});
  NodeId Matmul(NodeId a, NodeId b, std::string name = {});
  NodeId Cast(NodeId a, DType dtype, std::string name = {});

 private:
  friend class GraphRewriter;

  NodeId Append(Node node);  // an empty name stays empty
  std::string FreshName(NodeId id) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> inputs_;
  std::vector<Output> outputs_;
  std::map<std::string, NodeId, std::less<>> by_name_;
};

// The graph with every derived op replaced by its expansion, to primitives only. Names of the
// replaced nodes go to the roots of their expansions; literals get names. (Where an expansion is
// one of its own operands, its name is lost.) `ids` receives what each node has become.
Graph ExpandDerived(const Graph& graph);
Graph ExpandDerived(const Graph& graph, std::vector<NodeId>& ids);

// Same outputs without nodes that no output needs; the inputs stay.
Graph RemoveDead(const Graph& graph);

}  // namespace l3c::tensor
