// Simplification: the same specification, said once. Nothing is optimised at L3.
//
//   canonical domains   tensor(t, []) is scalar(t)
//   redundant terms     terms of one loss with the same kind and arguments become the first of
//   them,
//                       with the sum of their weights: w1·f + w2·f = (w1 + w2)·f
//
// A term that the goal or an annotation names stays as it is, and so do terms whose weights have no
// exact sum in binary floating point: as a function of the reals, the objective is the same.
#pragma once

#include "layers/l3/ir.h"

namespace l3c::l3 {

// The module must have passed Verify; the result passes it too.
Module Simplify(const Module& module);

}  // namespace l3c::l3
