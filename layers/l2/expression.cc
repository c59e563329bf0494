#include "layers/l2/expression.h"

#include <algorithm>
#include <map>
#include <utility>

#include "layers/l3/domain.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using l3::AlgebraOp;
using l3::Expr;
using l3::IsReduction;
using support::Kind;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

class Expander {
 public:
  Expander(const l3::Term& term, const ExpressionLookup& lookup, Graph& graph,
           support::Diagnostics& diagnostics)
      : term_(term), lookup_(lookup), g_(graph), diagnostics_(diagnostics) {}

  std::optional<NodeId> Run() {
    const Expr& expr = *term_.value;
    auto value = term_.kind == l3::LossKind::kConstraint ? Penalty(expr, false) : Value(expr);
    if (!value) return std::nullopt;
    if (g_.node(*value).dtype == DType::kBool) value = g_.Cast(*value, DType::kF32);
    if (g_.node(*value).shape.empty()) return value;
    return OverRow(*value, "mean");
  }

 private:
  std::nullopt_t Refuse(const Expr& expr, std::string message, std::string fix = "") {
    auto& error = diagnostics_.Error(Kind::kConsistency, expr.span, std::move(message));
    if (!fix.empty()) error.Fix(std::move(fix));
    return std::nullopt;
  }

  NodeId Apply(std::string_view op, std::vector<NodeId> operands) {
    return g_.Add(*tensor::FindOp(op), std::move(operands));
  }

  std::optional<NodeId> Value(const Expr& expr) {
    switch (expr.kind) {
      case Expr::Kind::kNumber:
        return g_.Const(expr.number);
      case Expr::Kind::kBool:
        return g_.Const(expr.number, DType::kBool);
      case Expr::Kind::kReference: {
        const ExpressionValue value = lookup_(RefOf(expr));
        if (value.per_row && value.nodes.size() == 1) return value.nodes[0];
        return Refuse(expr, "'" + expr.name + "' is many tensors; only a reduction reads all",
                      "write norm(" + expr.name + "), or sum, mean, min, max of it");
      }
      case Expr::Kind::kUnary: {
        const auto operand = Value(expr.args[0]);
        if (!operand) return std::nullopt;
        return Apply(expr.name == "!" ? "not" : "neg", {*operand});
      }
      case Expr::Kind::kBinary:
        return Elementwise(expr, AlgebraOp(expr.name));
      case Expr::Kind::kCall:
        return Call(expr);
      case Expr::Kind::kList:
        break;
    }
    return Refuse(expr, "a list is no value here");
  }

  std::optional<NodeId> Call(const Expr& call) {
    for (const std::string& label : call.labels) {
      if (!label.empty()) return Refuse(call, "'" + call.name + "' takes no labelled arguments");
    }
    if (IsReduction(call)) {
      if (call.args[0].kind == Expr::Kind::kReference) {
        const ExpressionValue value = lookup_(RefOf(call.args[0]));
        if (!value.per_row || value.nodes.size() != 1) return OverAll(value, call);
        return OverRow(value.nodes[0], call.name);
      }
      const auto operand = Value(call.args[0]);
      if (!operand) return std::nullopt;
      return OverRow(*operand, call.name);
    }
    const auto op = tensor::FindOp(call.name);
    const bool fits = op && tensor::Definition(*op).op_class == tensor::OpClass::kElementwise &&
                      *op != Op::kCast && *op != Op::kBitcast;
    if (!fits) {
      return Refuse(call,
                    "'" + call.name + "' changes shapes, which an expression over rows cannot",
                    "use elementwise functions, and sum, mean, min, max or norm over a row");
    }
    return Elementwise(call, call.name);
  }

  std::optional<NodeId> Elementwise(const Expr& expr, std::string_view op) {
    std::vector<NodeId> operands;
    for (const Expr& arg : expr.args) {
      const auto operand = Value(arg);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    if (!Align(expr, operands)) return std::nullopt;
    try {
      return Apply(op, std::move(operands));
    } catch (const tensor::ShapeError& error) {
      return Refuse(expr, "'" + expr.name + "': " + error.what());
    }
  }

  // Brings all to one shape.
  bool Align(const Expr& expr, std::vector<NodeId>& operands) {
    Shape common;
    for (NodeId id : operands) {
      const Shape& shape = g_.node(id).shape;
      if (shape.size() > common.size()) common = shape;
    }
    for (NodeId id : operands) {
      const Shape shape = g_.node(id).shape;
      if (shape.size() != common.size()) continue;
      for (size_t i = 0; i < shape.size(); ++i) common[i] = std::max(common[i], shape[i]);
    }
    for (NodeId& id : operands) {
      Shape shape = g_.node(id).shape;
      if (shape == common) continue;
      if (shape.size() == 1) {  // one value a row
        shape.resize(common.size(), 1);
        id = g_.Reshape(id, shape);
      }
      bool fits = shape.empty() || shape.size() == common.size();
      for (size_t i = 0; fits && i < shape.size(); ++i) {
        fits = shape[i] == common[i] || shape[i] == 1;
      }
      if (!fits) {
        Refuse(expr,
               "'" + expr.name + "' joins rows of shapes " + RowShape(shape) + " and " +
                   RowShape(common),
               "bring them to one shape, or reduce one with sum, mean, min, max or norm");
        return false;
      }
      if (shape != common) id = g_.Expand(id, common);
    }
    return true;
  }

  static std::string RowShape(const Shape& shape) {
    return tensor::ShapeToString(shape.empty() ? shape : Shape(shape.begin() + 1, shape.end()));
  }

  NodeId Number(NodeId id) {
    return g_.node(id).dtype == DType::kF32 ? id : g_.Cast(id, DType::kF32);
  }

  // [batch, …] → [batch].
  NodeId OverRow(NodeId id, const std::string& how) {
    id = Number(id);
    const Shape shape = g_.node(id).shape;
    std::vector<int64_t> axes;
    double elements = 1;
    for (size_t i = 1; i < shape.size(); ++i) {
      axes.push_back(static_cast<int64_t>(i));
      elements *= static_cast<double>(shape[i]);
    }
    auto sum = [&](NodeId a) { return axes.empty() ? a : g_.ReduceSum(a, axes); };
    auto max = [&](NodeId a) { return axes.empty() ? a : g_.ReduceMax(a, axes); };
    if (how == "max") return max(id);
    if (how == "min") return Apply("neg", {max(Apply("neg", {id}))});
    if (how == "norm") return Root(sum(Apply("square", {id})));
    const NodeId total = sum(id);
    if (how == "sum" || elements == 1) return total;
    return g_.Binary(Op::kMul, total, g_.Full(1 / elements, Shape(g_.node(total).shape)));
  }

  // The root, with slope 0 at 0 instead of an infinite one.
  NodeId Root(NodeId a) {
    const Shape shape = g_.node(a).shape;
    const NodeId none = g_.Binary(Op::kCmpLt, a, g_.Full(1e-37, Shape(shape)));
    const NodeId safe = g_.Add(Op::kWhere, {none, g_.Full(1, Shape(shape)), a});
    return g_.Add(Op::kWhere, {none, g_.Full(0, Shape(shape)), g_.Unary(Op::kSqrt, safe)});
  }

  // All of several tensors: [], or [batch] where they have rows.
  std::optional<NodeId> OverAll(const ExpressionValue& value, const Expr& call) {
    std::optional<NodeId> all;
    double elements = 0;
    const bool greatest = call.name == "max" || call.name == "min";
    for (NodeId node : value.nodes) {
      NodeId id = node;
      const Shape shape = g_.node(id).shape;
      std::vector<int64_t> axes;
      double own = 1;
      for (size_t i = value.per_row ? 1 : 0; i < shape.size(); ++i) {
        axes.push_back(static_cast<int64_t>(i));
        own *= static_cast<double>(shape[i]);
      }
      elements += own;
      if (call.name == "norm") id = Apply("square", {id});
      if (call.name == "min") id = Apply("neg", {id});
      if (!axes.empty()) id = greatest ? g_.ReduceMax(id, axes) : g_.ReduceSum(id, axes);
      all = !all ? id : g_.Binary(greatest ? Op::kMax : Op::kAdd, *all, id);
    }
    if (!all) return g_.Const(0);
    if (call.name == "min") return Apply("neg", {*all});
    if (call.name == "norm") return Root(*all);
    if (call.name != "mean") return all;
    return g_.Binary(Op::kMul, *all, g_.Full(1 / elements, Shape(g_.node(*all).shape)));
  }

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
      if (!Align(expr, parts)) return std::nullopt;
      return Apply((expr.name == "&&") != opposite ? "add" : "min", std::move(parts));
    }
    std::string name = expr.name;
    if (expr.kind == Expr::Kind::kCall) name = name == "cmplt" ? "<" : "!=";
    std::vector<NodeId> sides;
    for (const Expr& arg : expr.args) {
      const auto side = Value(arg);
      if (!side) return std::nullopt;
      sides.push_back(Number(*side));
    }
    if (!Align(expr, sides)) return std::nullopt;
    const bool equality = name == "==" || name == "!=";
    if (equality && (name == "==") != opposite) {
      return Apply("abs", {Apply("sub", {sides[0], sides[1]})});
    }
    if (equality) return g_.Cast(Apply("cmpeq", {sides[0], sides[1]}), DType::kF32);
    if ((name == ">" || name == ">=") != opposite) std::swap(sides[0], sides[1]);
    return Apply("relu", {Apply("sub", {sides[0], sides[1]})});
  }

  // The read that the expression mentions; the parser has made sure that there is one.
  const l3::Ref& RefOf(const Expr& expr) const {
    for (const l3::Ref& ref : term_.reads) {
      if (l3::PrintRef(ref) == expr.name) return ref;
    }
    return term_.reads.front();
  }

  const l3::Term& term_;
  const ExpressionLookup& lookup_;
  Graph& g_;
  support::Diagnostics& diagnostics_;
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
