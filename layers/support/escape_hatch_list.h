// The annotations of one thing, of each kind one.
#pragma once

#include <vector>

#include "layers/support/escape_hatch.h"

namespace l3c::support {

// Adds an annotation to those of the thing that it stands before or in; an error, naming both
// places, where there is one of its kind already: neither is better than the other.
void AddEscapeHatch(ParserBase& parser, EscapeHatch hatch, std::vector<EscapeHatch>& hatches);

}  // namespace l3c::support
