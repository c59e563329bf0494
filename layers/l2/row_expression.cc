#include "layers/l2/row_expression.h"

#include <algorithm>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {

using l3::AlgebraOp;
using l3::Expr;
using l3::IsReduction;
using support::Kind;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using tensor::Shape;

std::nullopt_t RowExpressions::Refuse(const Expr& expr, std::string message, std::string fix) {
  auto& error = diagnostics_.Error(Kind::kConsistency, expr.span, std::move(message));
  if (!fix.empty()) error.Fix(std::move(fix));
  return std::nullopt;
}

NodeId RowExpressions::Apply(std::string_view op, std::vector<NodeId> operands) {
  return g_.Add(*tensor::FindOp(op), std::move(operands));
}

std::optional<NodeId> RowExpressions::Value(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kNumber:
      return g_.Const(expr.number);
    case Expr::Kind::kBool:
      return g_.Const(expr.number, DType::kBool);
    case Expr::Kind::kReference: {
      const ExpressionValue value = lookup_(expr);
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

std::optional<NodeId> RowExpressions::Call(const Expr& call) {
  for (const std::string& label : call.labels) {
    if (!label.empty()) return Refuse(call, "'" + call.name + "' takes no labelled arguments");
  }
  if (IsReduction(call)) {
    if (call.args[0].kind == Expr::Kind::kReference) {
      const ExpressionValue value = lookup_(call.args[0]);
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
    return Refuse(call, "'" + call.name + "' changes shapes, which an expression over rows cannot",
                  "use elementwise functions, and sum, mean, min, max or norm over a row");
  }
  return Elementwise(call, call.name);
}

std::optional<NodeId> RowExpressions::Elementwise(const Expr& expr, std::string_view op) {
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

bool RowExpressions::Align(const Expr& expr, std::vector<NodeId>& operands) {
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

std::string RowExpressions::RowShape(const Shape& shape) {
  return tensor::ShapeToString(shape.empty() ? shape : Shape(shape.begin() + 1, shape.end()));
}

NodeId RowExpressions::Number(NodeId id) {
  return g_.node(id).dtype == DType::kF32 ? id : g_.Cast(id, DType::kF32);
}

NodeId RowExpressions::OverRow(NodeId id, const std::string& how) {
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
  if (how == "norm") return PowerOfPositive(g_, sum(Apply("square", {id})), 0.5);
  const NodeId total = sum(id);
  if (how == "sum" || elements == 1) return total;
  return g_.Binary(Op::kMul, total, g_.Full(1 / elements, Shape(g_.node(total).shape)));
}

std::optional<NodeId> RowExpressions::OverAll(const ExpressionValue& value, const Expr& call) {
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
  if (call.name == "norm") return PowerOfPositive(g_, *all, 0.5);
  if (call.name != "mean") return all;
  return g_.Binary(Op::kMul, *all, g_.Full(1 / elements, Shape(g_.node(*all).shape)));
}

}  // namespace l3c::l2
