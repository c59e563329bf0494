// The line of `optimize --json` and `run --json` on what a training step costs.
#pragma once

#include "tools/l3c/compile.h"

namespace l3c::tools {

// {"event":"cost", "step_time": what the search added up, "evidence": …, "predicted_step_time":
// what the plan is predicted to take}, seconds; nothing for a plan that was not searched for.
void PrintCostLine(Compilation& compilation);

}  // namespace l3c::tools
