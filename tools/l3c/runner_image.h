// The runtime that `l3c build` completes into a program (tools/program), as the bytes of an
// executable.
#pragma once

#include <string_view>

namespace l3c::tools {

std::string_view RunnerImage();

}  // namespace l3c::tools
