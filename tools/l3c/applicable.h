// Options that have nothing to act on in a program of their layer: told, not passed over.
#pragma once

#include "tools/l3c/options.h"

namespace l3c::tools {

// False after printing which option of the command line does not apply to the file, and why. What
// cannot be read is left to those who say so.
bool OptionsApply(const Options& options);

}  // namespace l3c::tools
