// How far two correct engines may be apart: a running bound on rounding errors.
//
// Beside the value of every element goes a bound on |computed - exact|, to first order in the unit
// roundoff u of its type: an operation passes on the errors of its operands and adds its own. Its
// own is measured against the sum of the magnitudes of the terms that were added up, not against
// the result, so the bound holds for every order of summation and for products that are multiplied
// out: where terms cancel it is as large as they were. Comparisons that the errors could turn, and
// roundings to integers that they could move, make their whole range the error.
//
//   N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 3.3
#pragma once

#include <span>
#include <vector>

#include "layers/tensor/interpreter.h"

namespace l3c::tensor {

struct Bounded {
  Array value;                // in its own dtype, as the interpreter has it
  std::vector<double> error;  // by element
};

// The values of `nodes` with their errors, given those of the graph's inputs in declaration order.
std::vector<Bounded> EvaluateWithBounds(const Graph& graph, std::span<const Bounded> inputs,
                                        std::span<const NodeId> nodes);

// Exactly known.
Bounded Exactly(Array value);

// Euclidean norm.
double Norm(std::span<const double> values);

}  // namespace l3c::tensor
