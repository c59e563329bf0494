// Resolution of references by name: the last step of parsing.
#pragma once

#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l3 {

// Sets the kind of every reference of the module and completes what expressions read. Unknown
// names are errors of kind safety, with the closest known name and where it is declared.
bool ResolveReferences(Module& module, support::Diagnostics& diagnostics);

}  // namespace l3c::l3
