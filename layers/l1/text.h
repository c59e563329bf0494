// L1 as text. The grammar is in docs/l1.md.
#pragma once

#include <optional>
#include <string>

#include "layers/l1/ir.h"
#include "layers/support/diagnostics.h"
#include "layers/support/source.h"

namespace l3c::l1 {

// `# l3c l1 v1` text → program. Every name is resolved, every tensor op is built and so its shapes
// are checked; what fails is reported, and there is no value after an error. Verify (verify.h)
// checks the rest.
//
// A file that holds a `system` and nothing else is a fragment: a program with only its system set.
std::optional<Program> ParseProgram(const support::SourceFile& source,
                                    support::Diagnostics& diagnostics);
bool IsSystemFragment(const Program& program);

// Canonical text: parsing it and printing again gives the same bytes. Line widths are at most 100
// columns where the text can be broken.
std::string PrintProgram(const Program& program);
// A fragment.
std::string PrintSystem(const System& system);

}  // namespace l3c::l1
