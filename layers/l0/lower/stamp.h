// From the plan of a step with three copies of its repeated blocks to that of the whole step.
//
// The kernels of the middle copy are launched for every copy that it speaks for, each time over the
// values and the state of that copy. What a copy reads of its neighbours is what the middle one
// reads of its own: the same place of a neighbouring copy, stored by the kernels of that one.
#pragma once

#include <optional>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/repeated_blocks.h"
#include "layers/l0/lower/step_plan.h"

namespace l3c::l0::lower {

struct StampedStep {
  ValueTable table;  // of each value only what a plan is put together from: type, name, input
  StepPlan plan;
};

// `chosen` and `plan`: of blocks.step. Nothing where what the first and the last copy store does
// not fit what the middle one reads, so that there is no such plan.
std::optional<StampedStep> StampBlocks(const RepeatedBlocks& blocks, const Step& whole,
                                       const ChooseResult& chosen, const StepPlan& plan);

}  // namespace l3c::l0::lower
