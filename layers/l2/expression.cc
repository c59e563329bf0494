#include "layers/l2/expression.h"

#include <map>
#include <utility>

#include "layers/l3/domain.h"

namespace l3c::l2 {
namespace {

using l3::Expr;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Shape;

class Expander {
 public:
  Expander(const l3::Term& term, const ExpressionLookup& lookup, Graph& graph,
           support::Diagnostics& diagnostics)
      : term_(term),
        g_(graph),
        rows_(
            graph, [this, &lookup](const Expr& ref) { return lookup(RefOf(ref)); }, diagnostics) {}

  std::optional<NodeId> Run() {
    const Expr& expr = *term_.value;
    auto value = term_.kind == l3::LossKind::kConstraint ? Penalty(expr, false) : rows_.Value(expr);
    if (!value) return std::nullopt;
    value = rows_.Number(*value);
    if (g_.node(*value).shape.empty()) return value;
    return rows_.OverRow(*value, "mean");
  }

 private:
  // By how much a predicate fails; `opposite`: its negation.
  std::optional<NodeId> Penalty(const Expr& expr, bool opposite) {
    if (expr.kind == Expr::Kind::kBool) return g_.Const((expr.number != 0) == opposite ? 1 : 0);
    if (expr.kind == Expr::Kind::kUnary && expr.name == "!") {
      return Penalty(expr.args[0], !opposite);
    }
    if (expr.kind == Expr::Kind::kBinary && (expr.name == "&&" || expr.name == "||")) {
      std::vector<NodeId> parts;
      for (const Expr& arg : expr.args) {
        const auto part = Penalty(arg, opposite);
        if (!part) return std::nullopt;
        parts.push_back(*part);
      }
      if (!rows_.Align(expr, parts)) return std::nullopt;
      return rows_.Apply((expr.name == "&&") != opposite ? "add" : "min", std::move(parts));
    }
    std::string name = expr.name;
    if (expr.kind == Expr::Kind::kCall) name = name == "cmplt" ? "<" : "!=";
    std::vector<NodeId> sides;
    for (const Expr& arg : expr.args) {
      const auto side = rows_.Value(arg);
      if (!side) return std::nullopt;
      sides.push_back(rows_.Number(*side));
    }
    if (!rows_.Align(expr, sides)) return std::nullopt;
    const bool equality = name == "==" || name == "!=";
    if (equality && (name == "==") != opposite) {
      return rows_.Apply("abs", {rows_.Apply("sub", {sides[0], sides[1]})});
    }
    if (equality) return g_.Cast(rows_.Apply("cmpeq", {sides[0], sides[1]}), DType::kF32);
    if ((name == ">" || name == ">=") != opposite) std::swap(sides[0], sides[1]);
    return rows_.Apply("relu", {rows_.Apply("sub", {sides[0], sides[1]})});
  }

  // The read that the expression mentions; the parser has made sure that there is one.
  const l3::Ref& RefOf(const Expr& expr) const {
    for (const l3::Ref& ref : term_.reads) {
      if (l3::PrintRef(ref) == expr.name) return ref;
    }
    return term_.reads.front();
  }

  const l3::Term& term_;
  Graph& g_;
  RowExpressions rows_;
};

}  // namespace

std::optional<NodeId> ExpandExpression(const l3::Term& term, const ExpressionLookup& lookup,
                                       Graph& graph, support::Diagnostics& diagnostics) {
  return Expander(term, lookup, graph, diagnostics).Run();
}

bool CheckExpression(const l3::Module& spec, const l3::Term& term,
                     support::Diagnostics& diagnostics) {
  constexpr int64_t kRows = 2;
  Graph graph;
  std::map<std::string, ExpressionValue> known;
  const ExpressionLookup lookup = [&](const l3::Ref& ref) {
    const std::string name = l3::PrintRef(ref);
    auto [it, fresh] = known.try_emplace(name);
    if (!fresh) return it->second;
    const l3::Domain* domain = spec.DomainOf(ref);
    Shape shape = domain ? l3::ExampleShape(*domain) : Shape{1};
    const bool several = domain == nullptr;
    it->second.per_row = ref.kind != l3::Ref::Kind::kParams;
    if (it->second.per_row) shape.insert(shape.begin(), kRows);
    it->second.nodes.push_back(graph.AddInput(name, DType::kF32, shape));
    // Of activations there may be one or many; the expression has to stand for both.
    if (several) it->second.nodes.push_back(graph.AddInput(name + " …", DType::kF32, shape));
    return it->second;
  };
  return ExpandExpression(term, lookup, graph, diagnostics).has_value();
}

}  // namespace l3c::l2
