// The golden plan of this folder (linear regression, pipeline depth 2) and ways to corrupt it.
#pragma once

#include <string>

#include "layers/l0/plan.h"

namespace l3c::l0::testing {

std::string LinearText();             // linear.l0
Plan Parse(const std::string& text);  // fails the test when it does not parse
// `text` with the first `from` replaced; unchanged when there is none.
std::string Replace(std::string text, const std::string& from, const std::string& to);

}  // namespace l3c::l0::testing
