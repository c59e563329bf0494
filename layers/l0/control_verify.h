// Checks of one control unit; see plan_verify.h for how they are filed.
#pragma once

#include <vector>

#include "layers/l0/control.h"
#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0 {

inline constexpr size_t kMaxControlBlocks = 4096;
inline constexpr size_t kMaxControlRegions = 1024;

// The streams, sequences and commands of `plan` must be in range. True when nothing was reported.
bool VerifyControl(const ControlUnit& unit, const Plan& plan, support::Diagnostics& diagnostics);

// The sequences that a verified unit may push, in ascending order.
std::vector<SequenceId> PushedSequences(const ControlUnit& unit);

}  // namespace l3c::l0
