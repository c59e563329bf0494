#include "layers/tensor/graph.h"

#include <algorithm>
#include <numeric>

#include "layers/tensor/shape_rules.h"

namespace l3c::tensor {

NodeId Graph::AddInput(std::string name, DType dtype, Shape shape, support::Span span) {
  if (name.empty()) throw ShapeError("an input needs a name");
  Node node;
  node.op = Op::kInput;
  node.attr.dtype = dtype;
  node.attr.ints = shape;
  node.dtype = dtype;
  node.shape = std::move(shape);
  node.name = std::move(name);
  node.span = span;
  const NodeId id = Append(std::move(node));
  inputs_.push_back(id);
  return id;
}

NodeId Graph::Add(Op op, std::vector<NodeId> inputs, Attributes attr, std::string name,
                  support::Span span) {
  if (op == Op::kInput) throw ShapeError("inputs are made by AddInput");
  if (name.empty()) name = FreshName(static_cast<NodeId>(nodes_.size()));
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attr = std::move(attr);
  node.name = std::move(name);
  node.span = span;
  return Append(std::move(node));
}

NodeId Graph::AddLiteral(double value, DType dtype, support::Span span) {
  Node node;
  node.op = Op::kConst;
  node.attr.scalar = value;
  node.attr.dtype = dtype;
  node.span = span;
  return Append(std::move(node));
}

NodeId Graph::Append(Node node) {
  for (NodeId input : node.inputs) {
    if (input >= nodes_.size())
      throw ShapeError("operand %" + std::to_string(input) + " is no node");
  }
  if (by_name_.contains(node.name)) {
    throw ShapeError("the name '" + node.name + "' is taken already; choose another");
  }
  InferNode(*this, node);
  const NodeId id = static_cast<NodeId>(nodes_.size());
  if (!node.name.empty()) by_name_.emplace(node.name, id);
  nodes_.push_back(std::move(node));
  return id;
}

// Depends on nothing but what the graph holds, so that a graph read back from its text goes on to
// name its nodes as the original would.
std::string Graph::FreshName(NodeId id) const {
  for (size_t n = id;; ++n) {
    std::string name = "t" + std::to_string(n);
    if (!by_name_.contains(name)) return name;
  }
}

void Graph::AddOutput(std::string name, NodeId node) {
  if (node >= nodes_.size()) throw ShapeError("output '" + name + "' is no node of the graph");
  for (const Output& output : outputs_) {
    if (output.name == name) throw ShapeError("there is an output '" + name + "' already");
  }
  outputs_.push_back({std::move(name), node});
}

std::optional<NodeId> Graph::Find(std::string_view name) const {
  auto it = by_name_.find(name);
  if (it == by_name_.end()) return std::nullopt;
  return it->second;
}

void Graph::Rename(NodeId id, std::string name) {
  Node& node = nodes_.at(id);
  if (node.name == name) return;
  if (!name.empty() && !by_name_.emplace(name, id).second) {
    throw ShapeError("the name '" + name + "' is taken already; choose another");
  }
  by_name_.erase(node.name);
  node.name = std::move(name);
}

NodeId Graph::Const(double value, DType dtype) {
  Attributes attr;
  attr.scalar = value;
  attr.dtype = dtype;
  return Add(Op::kConst, {}, std::move(attr));
}

NodeId Graph::Full(double value, Shape shape, DType dtype) {
  const NodeId scalar = Const(value, dtype);
  return shape.empty() ? scalar : Expand(scalar, std::move(shape));
}

namespace {

Attributes Ints(std::vector<int64_t> ints) {
  Attributes attr;
  attr.ints = std::move(ints);
  return attr;
}

}  // namespace

NodeId Graph::Reshape(NodeId a, Shape shape, std::string name) {
  return Add(Op::kReshape, {a}, Ints(std::move(shape)), std::move(name));
}

NodeId Graph::Expand(NodeId a, Shape shape, std::string name) {
  return Add(Op::kExpand, {a}, Ints(std::move(shape)), std::move(name));
}

NodeId Graph::Permute(NodeId a, std::vector<int64_t> order, std::string name) {
  return Add(Op::kPermute, {a}, Ints(std::move(order)), std::move(name));
}

NodeId Graph::Transpose(NodeId a, std::string name) {
  if (a >= nodes_.size() || nodes_[a].shape.size() < 2) {
    throw ShapeError("tensor_transpose swaps the last two axes and so needs a matrix");
  }
  std::vector<int64_t> order(nodes_[a].shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return Permute(a, std::move(order), std::move(name));
}

NodeId Graph::ReduceSum(NodeId a, std::vector<int64_t> axes, std::string name) {
  return Add(Op::kReduceSum, {a}, Ints(std::move(axes)), std::move(name));
}

NodeId Graph::ReduceMax(NodeId a, std::vector<int64_t> axes, std::string name) {
  return Add(Op::kReduceMax, {a}, Ints(std::move(axes)), std::move(name));
}

NodeId Graph::Matmul(NodeId a, NodeId b, std::string name) {
  return Add(Op::kMatmul, {a, b}, {}, std::move(name));
}

NodeId Graph::Cast(NodeId a, DType dtype, std::string name) {
  Attributes attr;
  attr.dtype = dtype;
  return Add(Op::kCast, {a}, std::move(attr), std::move(name));
}

// Builds a graph from another one. Names are settled at the end, because a fresh name may not take
// one that a later node of the source holds.
class GraphRewriter {
 public:
  // With `expand`, derived ops are replaced by their expansions and literals become named.
  GraphRewriter(const Graph& from, bool expand)
      : from_(from), expand_(expand), ids_(from.size(), kSkipped) {}

  void Copy(NodeId id) {
    const Node& node = from_.node(id);
    ids_[id] = node.op == Op::kInput ? to_.AddInput(node.name, node.dtype, node.shape, node.span)
                                     : Expand(node, MapInputs(node, ids_));
  }

  // Gives every node its name: the source's where one node stands for it, else a fresh one.
  Graph Finish() {
    for (NodeId id = 0; id < from_.size(); ++id) {
      const std::string& name = from_.node(id).name;
      if (ids_[id] == kSkipped || name.empty()) continue;
      if (to_.node(ids_[id]).name.empty()) to_.Rename(ids_[id], name);
    }
    NodeId end = 0;
    for (NodeId id = 0; id < to_.size(); ++id) {
      const bool literal = !expand_ && to_.node(id).op == Op::kConst;
      if (!to_.node(id).name.empty() || literal) continue;
      // The numbers from here to before `end` are taken: a run of them is gone through once.
      std::string fresh = to_.FreshName(std::max(end, id));
      end = static_cast<NodeId>(std::stoul(fresh.substr(1))) + 1;
      to_.Rename(id, std::move(fresh));
    }
    for (const Output& output : from_.outputs()) to_.AddOutput(output.name, ids_[output.node]);
    return std::move(to_);
  }

  std::vector<NodeId> TakeIds() { return std::move(ids_); }

 private:
  static constexpr NodeId kSkipped = ~NodeId{0};

  static std::vector<NodeId> MapInputs(const Node& node, const std::vector<NodeId>& ids) {
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) inputs.push_back(ids[input]);
    return inputs;
  }

  // Recursion is bounded: a derived op nests at most so deep, or its node was refused.
  NodeId Expand(const Node& node, std::vector<NodeId> inputs) {
    if (!expand_ || !IsDerived(node.op)) {
      Node copy = node;
      copy.inputs = std::move(inputs);
      copy.name.clear();
      return to_.Append(std::move(copy));
    }
    // The expansion is built aside first, since it may itself hold derived ops.
    Graph body;
    std::vector<NodeId> parameters;
    for (NodeId input : inputs) {
      const Node& operand = to_.node(input);
      parameters.push_back(
          body.AddInput("p" + std::to_string(parameters.size()), operand.dtype, operand.shape));
    }
    const NodeId root = Definition(node.op).expand(body, parameters, node.attr);
    std::vector<NodeId> ids = std::move(inputs);  // the parameters are the first nodes of the body
    for (NodeId id = static_cast<NodeId>(parameters.size()); id < body.size(); ++id) {
      Node inner = body.node(id);
      inner.span = node.span;
      ids.push_back(Expand(inner, MapInputs(inner, ids)));
    }
    return ids[root];
  }

  const Graph& from_;
  const bool expand_;
  Graph to_;
  std::vector<NodeId> ids_;  // of each source node, what it has become
};

Graph ExpandDerived(const Graph& graph) {
  std::vector<NodeId> ids;
  return ExpandDerived(graph, ids);
}

Graph ExpandDerived(const Graph& graph, std::vector<NodeId>& ids) {
  GraphRewriter rewriter(graph, /*expand=*/true);
  for (NodeId id = 0; id < graph.size(); ++id) rewriter.Copy(id);
  Graph expanded = rewriter.Finish();
  ids = rewriter.TakeIds();
  return expanded;
}

Graph RemoveDead(const Graph& graph) {
  std::vector<bool> live(graph.size());
  for (const Output& output : graph.outputs()) live[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (graph.node(id).op == Op::kInput) live[id] = true;
    if (!live[id]) continue;
    for (NodeId input : graph.node(id).inputs) live[input] = true;
  }
  GraphRewriter rewriter(graph, /*expand=*/false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (live[id]) rewriter.Copy(id);
  }
  return rewriter.Finish();
}

}  // namespace l3c::tensor
