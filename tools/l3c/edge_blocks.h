// The blocks of a kernel at the ends of its grid axes: tails and masks are there.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/l0/kernel.h"

namespace l3c::tools {

// The first and the last along every axis, in all combinations.
std::vector<int64_t> EdgeBlocks(const l0::Kernel& kernel);

}  // namespace l3c::tools
