// The text of a module with one .entry.
#pragma once

#include <string>
#include <string_view>

#include "backends/ptx/instruction.h"

namespace l3c::ptx {

// `target`: "sm_80"; `isa`: the version of the PTX ISA, "7.0".
std::string PrintModule(const Function& function, std::string_view target, std::string_view isa);

}  // namespace l3c::ptx
