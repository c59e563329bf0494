// From the plans of a step's parts to that of the whole step.
//
// The kernels of a part are launched for every copy that it speaks for, each time over the values
// and the state of that copy. What a part is given is what another one, or the neighbouring copy,
// has stored for it.
#pragma once

#include <optional>
#include <vector>

#include "layers/l0/lower/step_cache.h"
#include "layers/l0/lower/step_parts.h"

namespace l3c::l0::lower {

// `planned`: by part. Nothing where the parts wait for one another, so that there is no such plan.
std::optional<PlannedStep> JoinParts(const Step& whole, const StepParts& parts,
                                     std::vector<PlannedStep> planned);

}  // namespace l3c::l0::lower
