// Predicates of a method (layers/l3/expression.h) as tensor programs over the rows of a batch: when
// a recurrence has done enough, which rows a curriculum shows.
//
// A name stands for a value of each row. Names of one element a row are numbers; of a value with
// more elements only a reduction is a number: sum, mean, min, max of one argument, norm
// (Euclidean).
#pragma once

#include <map>
#include <string>

#include "layers/l3/expression.h"
#include "layers/support/diagnostics.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// Nodes [batch, …] of a float dtype, by name; a name may have dots.
using PredicateValues = std::map<std::string, tensor::NodeId>;

// bool [batch]. The predicate must have passed CheckPredicate for values of these sample shapes.
tensor::NodeId ExpandPredicate(tensor::Graph& graph, const l3::Expr& predicate,
                               const PredicateValues& values, int64_t batch);

// Reports what ExpandPredicate cannot take; `shapes` are those of one sample.
bool CheckPredicate(const l3::Expr& predicate, const std::map<std::string, tensor::Shape>& shapes,
                    support::Diagnostics& diagnostics);

}  // namespace l3c::l2
