// Literals as the text language writes them.
#pragma once

#include <string>
#include <string_view>

namespace l3c::egraph {

// The shortest decimal digits that read back as the same number, without an exponent, and always
// with a point: a literal of f64 shows that it is none of i64.
std::string F64Text(double d);
// In quotes, with those in it escaped.
std::string QuotedText(std::string_view s);

}  // namespace l3c::egraph
