// Runs a plan's init ops, on all threads of a team. The values depend on (seed, key) and the
// buffer's extents alone.
#pragma once

#include "layers/l0/plan.h"
#include "runtime/memory.h"
#include "runtime/worker_team.h"

namespace l3c::runtime {

void RunInit(const l0::Plan& plan, const Memory& memory, WorkerTeam& team);

}  // namespace l3c::runtime
