// Parts of VerifyPlan that look at what is declared, each by itself.
#pragma once

#include <string>

#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0 {

bool IsPlanName(const std::string& text);  // letters, digits and underscores, no digit first

// Names are names and stand once; ids are of something. What follows reads through them.
void CheckNamesAndIds(const Plan& plan, support::Diagnostics& diagnostics);
// Pools in their nodes, buffers in their pools, and what is in them first.
void CheckMemory(const Plan& plan, support::Diagnostics& diagnostics);
// Buffers that share a cache line but no bytes: no threads or streams write it beside one another.
void CheckLines(const Plan& plan, support::Diagnostics& diagnostics);
// Data sources, samplers and phases, and the numbers that bound the loops of control units.
void CheckData(const Plan& plan, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
