#include "layers/l2/predicate.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/l2/row_expression.h"
#include "layers/support/printer.h"

namespace l3c::l2 {

using l3::Expr;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Shape;

namespace {

// [batch], bool where the predicate is sound; `diagnostics` gets why not.
std::optional<NodeId> Expand(Graph& graph, const Expr& predicate, const PredicateValues& values,
                             int64_t batch, support::Diagnostics& diagnostics) {
  const auto lookup = [&](const Expr& ref) {
    const NodeId value = As(graph, values.at(ref.name), DType::kF32);
    const int64_t elements = tensor::NumElements(graph.node(value).shape) / batch;
    const Shape shape = elements == 1 ? Shape{batch} : Shape{batch, elements};
    return ExpressionValue{true, {graph.Reshape(value, shape)}};
  };
  const auto value = RowExpressions(graph, lookup, diagnostics).Value(predicate);
  if (!value || !graph.node(*value).shape.empty()) return value;
  return graph.Expand(*value, {batch});
}

}  // namespace

NodeId ExpandPredicate(Graph& graph, const Expr& predicate, const PredicateValues& values,
                       int64_t batch) {
  support::Diagnostics diagnostics;
  const auto value = Expand(graph, predicate, values, batch, diagnostics);
  if (!value) throw std::logic_error("the predicate was not checked");
  return *value;
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
  const auto value = Expand(graph, predicate, values, kBatch, diagnostics);
  if (!value) return false;
  std::string problem;
  if (graph.node(*value).shape != Shape{kBatch}) {
    problem = "this is a truth for each element, not for each row";
  } else if (graph.node(*value).dtype != DType::kBool) {
    problem = "this is a number, not a truth";
  }
  if (problem.empty()) return true;
  diagnostics.Error(support::Kind::kConsistency, predicate.span, problem)
      .Fix("reduce each side to a number, as in max(x) < 1");
  return false;
}

}  // namespace l3c::l2
