// BigInt and BigRat: whole numbers and fractions without overflow, up to kMaxBigBits. Rational:
// fractions of i64; a result that is none is nothing.
//
// They are kept as text in the pool of strings ("-12", "3/4" in lowest terms): exact, equal when
// equal, and without a number type in the headers. They are meant for coefficients, not for bulk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "egraph/ids.h"

namespace l3c::egraph {

class EGraph;

// Results with a longer numerator or denominator are nothing.
inline constexpr size_t kMaxBigBits = size_t{1} << 20;

void RegisterBigPrimitives(EGraph& graph);
// Whether a value of this sort is kept as just this text; false for all other sorts.
bool IsBigText(SortId sort, std::string_view text);
// As an expression that gives the value: (from-string "12"), (bigrat (from-string "3") …),
// (rational 3 4).
std::string DescribeBig(const EGraph& graph, SortId sort, Value value);

}  // namespace l3c::egraph
