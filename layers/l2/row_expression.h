// The values of expressions (layers/l3/expression.h) over the rows of a batch, as tensor programs:
// what constraints, custom losses and predicates share.
//
// A field or an output is [batch, …one sample]; a number fits any shape; sum, mean, min, max of one
// argument and norm (Euclidean) reduce each row to one value, which fits any shape of that row.
// Operands otherwise have equal shapes, or differ by axes of extent 1. Parameters have no rows:
// they stand inside a reduction only, which runs over all of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l3/expression.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// What a reference of an expression stands for.
struct ExpressionValue {
  bool per_row = true;                // false: parameters
  std::vector<tensor::NodeId> nodes;  // f32; one, but for parameters and activations
};

class RowExpressions {
 public:
  // What a reference stands for, by its expression.
  using Lookup = std::function<ExpressionValue(const l3::Expr& reference)>;
  // All must outlive this. `diagnostics` receives what cannot be computed; nothing is returned
  // then.
  RowExpressions(tensor::Graph& graph, Lookup lookup, support::Diagnostics& diagnostics)
      : g_(graph), lookup_(std::move(lookup)), diagnostics_(diagnostics) {}

  // [], or [batch, …]; bool where it is a truth.
  std::optional<tensor::NodeId> Value(const l3::Expr& expr);
  // The same in f32.
  tensor::NodeId Number(tensor::NodeId id);
  // Brings all to one shape.
  bool Align(const l3::Expr& expr, std::vector<tensor::NodeId>& operands);
  // [batch, …] → [batch], by "sum", "mean", "min", "max" or "norm".
  tensor::NodeId OverRow(tensor::NodeId id, const std::string& how);
  tensor::NodeId Apply(std::string_view op, std::vector<tensor::NodeId> operands);

 private:
  std::nullopt_t Refuse(const l3::Expr& expr, std::string message, std::string fix = "");
  std::optional<tensor::NodeId> Call(const l3::Expr& call);
  std::optional<tensor::NodeId> Elementwise(const l3::Expr& expr, std::string_view op);
  static std::string RowShape(const tensor::Shape& shape);
  // All of several tensors: [], or [batch] where they have rows.
  std::optional<tensor::NodeId> OverAll(const ExpressionValue& value, const l3::Expr& call);

  tensor::Graph& g_;
  const Lookup lookup_;
  support::Diagnostics& diagnostics_;
};

}  // namespace l3c::l2
