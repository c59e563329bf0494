// The kernel of an annotated value.
#pragma once

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/own_kernel.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0::lower {

// Makes the UOps of the value and reads the file of the annotation, which takes their place or runs
// for them. False after an error at the annotation.
bool MakeOwnKernel(OwnKernel& own, const KernelCostModel& costs, const RuleSources& rules,
                   const ChooseOptions& options, support::Diagnostics& diagnostics);

}  // namespace l3c::l0::lower
