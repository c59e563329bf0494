// Planned steps kept from run to run: the choice of a step's kernels depends on the step, the
// rules, the cost model's figures and the options, and on nothing else of the program. So a change
// to one pipeline, one phase or one model leaves the plans of the others as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

struct PlannedStep {
  ValueTable table;  // of each value only what a plan is put together from: type, name, input
  StepPlan plan;
  search::Explanation explanation;  // of this step alone
};

// All that the plan of a step depends on; "" where that cannot be told, where rules of the
// user's have to be traced, or where kernels come from files of the user's.
std::string StepKey(const Step& step, const KernelCostModel& costs, const RuleSources& rules,
                    const ChooseOptions& options);

std::string WritePlannedStep(const PlannedStep& planned);
// Nothing for bytes that WritePlannedStep did not write.
std::optional<PlannedStep> ReadPlannedStep(std::string_view bytes);

// What the explanation of a step adds to that of the plan.
void AddExplanation(search::Explanation step, search::Explanation& whole);

}  // namespace l3c::l0::lower
