// Proofs as people read them, and as JSON.
//
//   t1 = (Mul (Num 2) (Add (Var "x") (Num 3)))
//   t2 = …
//
//   1. t1 is there
//        stated at sum.egg:8: (let expr1 (Mul (Num 2) …
//   2. (Add t3 t4) = t1
//        by rule "(Mul a (Add b c)) => …" (sum.egg:13) with a = (Num 2), b = (Var "x"), c = (Num
//        3); because 1
//   3. t1 = t5
//        along 2 backwards, 4
//
// Terms that stand at several places and would be long are named once, above the steps.
#pragma once

#include <string>

#include "egraph/egraph.h"
#include "egraph/proof.h"

namespace l3c::egraph {

std::string PrintProof(const EGraph& graph, const Proof& proof);
// One object: "terms", "applications", "steps", "goals", "size", "first_size". Terms, steps and
// applications refer to each other by index; "text" of a step is what PrintProof() says of it.
std::string ProofJson(const EGraph& graph, const Proof& proof);

}  // namespace l3c::egraph
