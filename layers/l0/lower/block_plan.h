// The plan of a step that repeats blocks, by the search of one of them between its neighbours.
#pragma once

#include <optional>
#include <string>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/step_cache.h"

namespace l3c::l0::lower {

// Nothing where the step repeats none (repeated_blocks.h), where what is found for one does not fit
// together for more (stamp.h), or where there is no plan: then the whole step is to be searched.
// Where that is because of what is forced, such as a choice of one copy that is none of the three,
// `alone` says so.
std::optional<PlannedStep> PlanByBlocks(const Step& step, const KernelCostModel& costs,
                                        const RuleSources& rules, const ChooseOptions& options,
                                        std::string* alone = nullptr);

}  // namespace l3c::l0::lower
