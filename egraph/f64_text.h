// A f64 as text: the shortest digits that read back as the same number, in the two forms that
// egglog has.
#pragma once

#include <string>

namespace l3c::egraph {

// As a literal: never with an exponent, and with ".0" where it would read as an i64. NaN, inf,
// -inf.
std::string F64Literal(double d);
// As the primitive to-string gives it: with an exponent from 1e16 on and below 1e-4, always with a
// point or an exponent.
std::string F64ToString(double d);

}  // namespace l3c::egraph
