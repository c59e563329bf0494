// What the searches of a step's parts decided, as decisions on the whole step.
#pragma once

#include <vector>

#include "layers/l0/lower/step_parts.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

struct PartExplanation {
  const StepPart* part = nullptr;
  search::Explanation explanation;
  search::CostVector cost;  // of the part, once
};

// Of all parts, each as often as it is there.
search::CostVector JoinCosts(const std::vector<PartExplanation>& parts);

// Costs become those of the whole step: what a choice makes of a part, as often as the part is
// there, all else as chosen. A decision that several parts have, on how far a form goes, becomes
// one.
search::Explanation JoinExplanations(const Step& whole, const StepParts& parts,
                                     std::vector<PartExplanation> explanations);

}  // namespace l3c::l0::lower
