// Errors of a layer below the user's file, told at their place in the file.
//
// A lowering reads and verifies the text that it has made, and its errors point there. Nobody has
// that text, and what is wrong in it is mostly what the file says in the same words.
#pragma once

#include "layers/support/diagnostics.h"
#include "layers/support/source.h"

namespace l3c::tools {

// The errors with each place in `made` replaced by the place in `written` that has the same words;
// where there is none, the error is about the whole file, and a note has the line of the text that
// was made of it, `layer`.
support::Diagnostics Relocate(const support::Diagnostics& errors, const support::SourceFile& made,
                              const support::SourceFile& written, std::string_view layer);

}  // namespace l3c::tools
