// Constraints and custom losses as tensor programs over the rows of a batch: their expressions
// (row_expression.h), and what a constraint that does not hold costs.
//
// A constraint that holds costs nothing; one that does not costs by how much:
//   a <= b, a < b   max(a − b, 0)          p && q   p + q
//   a == b          |a − b|                p || q   the lesser
//   a != b          1 where they are equal  !p       that of the opposite comparison
// averaged over the elements of a row.
#pragma once

#include <functional>
#include <optional>

#include "layers/l2/row_expression.h"
#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

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
