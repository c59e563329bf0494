// The plan of a step that repeats blocks, by searches of its parts (step_parts.h).
#pragma once

#include <optional>
#include <string>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/step_cache.h"
#include "layers/support/blob_cache.h"

namespace l3c::l0::lower {

// Nothing where the step repeats none, or where there is no plan: then the whole step is to be
// searched. Where that is because of what is forced, such as a choice of one copy that is not the
// first, `alone` says so. Plans of parts are taken from `cache` and left in it, if there is one.
std::optional<PlannedStep> PlanByParts(const Step& step, const KernelCostModel& costs,
                                       const RuleSources& rules, const ChooseOptions& options,
                                       support::BlobCache* cache = nullptr,
                                       std::string* alone = nullptr);

}  // namespace l3c::l0::lower
