// Files that a specification names: `custom("hinge.expr", reads: […])` takes its value from the
// file, which holds one expression (expression.h). Inlined, the specification stands by itself.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l3 {

// The text of a file, by the path that the specification gives; nothing when it cannot be read.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

// Gives every custom loss that names a file the expression in it, and the name of the file without
// its ending as its own: `custom(hinge, reads: […], value: …)`. False after reporting, at the term,
// a file that is not there (environment) or what is wrong in it, with the place in the file.
bool InlineFiles(Module& module, const ReadText& read, support::Diagnostics& diagnostics);

}  // namespace l3c::l3
