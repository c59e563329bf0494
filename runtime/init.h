// Runs a plan's init ops. The values depend on (seed, key) and the buffer's extents alone.
#pragma once

#include "layers/l0/plan.h"
#include "runtime/memory.h"

namespace l3c::runtime {

void RunInit(const l0::Plan& plan, const Memory& memory);

}  // namespace l3c::runtime
