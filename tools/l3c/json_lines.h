// The lines of --json: one object a line on standard output, the last one {"event":"done",…}.
//
// Errors are told to people on standard error in any case; where a command was asked for lines,
// each is an object {"event":"diagnostic",…} as well, and what failed ends with
// {"event":"done","ok":false}.
#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace l3c::support {
class Diagnostics;
}

namespace l3c::tools {

// Before a command runs: whether it was asked for lines.
void UseJsonLines(bool use);
// Prints one object whatever was asked for. Strings may hold any bytes.
void PrintJsonLine(const nlohmann::ordered_json& event);
// Where lines were asked for, `members` of a diagnostic: "message", and "kind", "file", "line",
// "column", "label", "notes", "fix" as far as they are known.
void PrintJsonDiagnostic(const nlohmann::ordered_json& members);
void PrintJsonDiagnostics(const support::Diagnostics& diagnostics);
// Where lines were asked for and the last one has not been printed: that line.
void EndJsonLines(bool ok);

}  // namespace l3c::tools
