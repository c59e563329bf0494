#include "layers/l2/predicate.h"

#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/support/printer.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using l3::AlgebraOp;
using l3::Expr;
using l3::IsReduction;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

class Expander {
 public:
  Expander(Graph& graph, const PredicateValues& values, int64_t batch)
      : g_(graph), values_(values), batch_(batch) {}

  // Numbers are [batch], values of more elements [batch, n].
  NodeId Value(const Expr& e) {
    switch (e.kind) {
      case Expr::Kind::kNumber:
        return g_.Full(e.number, {batch_});
      case Expr::Kind::kBool:
        return g_.Full(e.number, {batch_}, DType::kBool);
      case Expr::Kind::kReference: {
        const NodeId value = As(g_, values_.at(e.name), DType::kF32);
        const int64_t elements = tensor::NumElements(g_.node(value).shape) / batch_;
        return g_.Reshape(value, elements == 1 ? Shape{batch_} : Shape{batch_, elements});
      }
      case Expr::Kind::kUnary:
        return Apply(g_, e.name == "-" ? "neg" : "not", {Value(e.args[0])});
      case Expr::Kind::kBinary:
        return Elementwise(AlgebraOp(e.name), {Value(e.args[0]), Value(e.args[1])});
      case Expr::Kind::kCall: {
        if (IsReduction(e)) return Reduce(e.name, Value(e.args[0]));
        std::vector<NodeId> operands;
        for (const Expr& arg : e.args) operands.push_back(Value(arg));
        return Elementwise(e.name, std::move(operands));
      }
      case Expr::Kind::kList:
        break;
    }
    throw tensor::ShapeError("a list is no value");
  }

 private:
  NodeId Elementwise(std::string_view op, std::vector<NodeId> operands) {
    Shape wide = {batch_};
    for (NodeId operand : operands) {
      const Shape& shape = g_.node(operand).shape;
      if (shape.size() < 2) continue;
      if (wide.size() == 2 && wide != shape) {
        throw tensor::ShapeError("the operands have " + tensor::ShapeToString({wide[1]}) + " and " +
                                 tensor::ShapeToString({shape[1]}) + " elements a row");
      }
      wide = shape;
    }
    for (NodeId& operand : operands) {
      if (g_.node(operand).shape != wide) operand = SpreadLast(g_, operand, wide);
    }
    const auto known = tensor::FindOp(op);
    if (!known || tensor::Definition(*known).op_class != tensor::OpClass::kElementwise ||
        tensor::Definition(*known).arity != static_cast<int>(operands.size())) {
      throw tensor::ShapeError("'" + std::string(op) + "' is no function of " +
                               std::to_string(operands.size()) + " numbers here");
    }
    return g_.Add(*known, std::move(operands));
  }

  NodeId Reduce(const std::string& name, NodeId value) {
    if (g_.node(value).shape.size() < 2) value = g_.Reshape(value, {batch_, 1});
    if (name == "max") return MaxLast(g_, value);
    if (name == "min") return g_.Unary(Op::kNeg, MaxLast(g_, g_.Unary(Op::kNeg, value)));
    if (name == "mean") return MeanLast(g_, value);
    if (name == "sum") return SumLast(g_, value);
    return g_.Unary(Op::kSqrt, SumLast(g_, Apply(g_, "square", {value})));
  }

  Graph& g_;
  const PredicateValues& values_;
  const int64_t batch_;
};

}  // namespace

NodeId ExpandPredicate(Graph& graph, const Expr& predicate, const PredicateValues& values,
                       int64_t batch) {
  return Expander(graph, values, batch).Value(predicate);
}

bool CheckPredicate(const Expr& predicate, const std::map<std::string, Shape>& shapes,
                    support::Diagnostics& diagnostics) {
  if (!l3::VerifyExpr(predicate, diagnostics)) return false;
  bool ok = true;
  std::vector<std::string> names;
  for (const auto& [name, shape] : shapes) names.push_back(name);
  l3::ForEachReference(predicate, [&](const Expr& ref) {
    if (shapes.contains(ref.name)) return;
    diagnostics
        .Error(support::Kind::kSafety, ref.span, "the predicate cannot read '" + ref.name + "'")
        .Label("it may read " + support::Join(names));
    ok = false;
  });
  if (!ok) return false;
  Graph graph;
  PredicateValues values;
  constexpr int64_t kBatch = 2;
  for (const auto& [name, shape] : shapes) {
    Shape batch = shape;
    batch.insert(batch.begin(), kBatch);
    values[name] = graph.AddInput("v" + std::to_string(values.size()), DType::kF32, batch);
  }
  std::string problem;
  try {
    const NodeId value = ExpandPredicate(graph, predicate, values, kBatch);
    if (graph.node(value).shape != Shape{kBatch}) {
      problem = "this is a truth for each element, not for each row";
    } else if (graph.node(value).dtype != DType::kBool) {
      problem = "this is a number, not a truth";
    }
  } catch (const tensor::ShapeError& error) {
    problem = error.what();
  }
  if (problem.empty()) return true;
  diagnostics.Error(support::Kind::kConsistency, predicate.span, problem)
      .Fix("reduce each side to a number, as in max(x) < 1");
  return false;
}

}  // namespace l3c::l2
