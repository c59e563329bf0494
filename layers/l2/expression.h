// Expressions of constraints and custom losses (layers/l3/expression.h) as tensor programs over the
// rows of a batch.
//
// A field or an output is [batch, …one sample]; a number fits any shape; sum, mean, min, max of one
// argument and norm (Euclidean) reduce each row to one value, which fits any shape of that row.
// Operands otherwise have equal shapes, or differ by axes of extent 1. Parameters have no rows:
// they stand inside a reduction only, which runs over all of them.
//
// A constraint that holds costs nothing; one that does not costs by how much:
//   a <= b, a < b   max(a − b, 0)          p && q   p + q
//   a == b          |a − b|                p || q   the lesser
//   a != b          1 where they are equal  !p       that of the opposite comparison
// averaged over the elements of a row.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layers/l3/expression.h"
#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// What a reference of an expression stands for.
struct ExpressionValue {
  bool per_row = true;                // false: parameters
  std::vector<tensor::NodeId> nodes;  // f32; one, but for parameters and activations
};
using ExpressionLookup = std::function<ExpressionValue(const l3::Ref&)>;

// The term's value, f32: [batch], or [] where it reads parameters alone. `diagnostics` receives
// what cannot be computed, and nothing is returned then.
std::optional<tensor::NodeId> ExpandExpression(const l3::Term& term, const ExpressionLookup& lookup,
                                               tensor::Graph& graph,
                                               support::Diagnostics& diagnostics);

// Whether ExpandExpression can compute it, on samples of the declared domains.
bool CheckExpression(const l3::Module& spec, const l3::Term& term,
                     support::Diagnostics& diagnostics);

}  // namespace l3c::l2
