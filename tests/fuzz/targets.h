// What the fuzzers call: bytes from anywhere, into the readers of programs and of serialized
// e-graphs. Each returns when it has read, run and written what it could, within bounds on work and
// memory; it aborts where something that must hold does not.
#pragma once

#include <string_view>

namespace l3c::egraph {

// A program of the text language, carried out twice with small budgets: both runs must end alike.
void FuzzLanguage(std::string_view text);

// A file of egraph-serialize: read, written, read again, extracted from and drawn.
void FuzzJson(std::string_view text);

}  // namespace l3c::egraph
