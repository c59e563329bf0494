// The last say between the best few methods: what their whole plans take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l2/candidate.h"
#include "layers/l2/lower.h"
#include "layers/l2/searcher.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// The id of what Rerank decides: l2/MODEL/plan. Its labels are ranks by the priors, from 1.
std::string PlanDecision(const Space& space);

// Orders `found` by predicted steps × the simulated step of their whole plans, and records it as
// PlanDecision. Those that cannot be placed are dropped, unless none can. What is
// forced is taken as it ranks by the priors, so that a loser costs what was explained.
std::optional<search::SearchFailure> Rerank(const Space& space, const StepSimulator& simulate,
                                            const search::ForcedChoices& forced,
                                            std::vector<Scored>& found,
                                            search::Explanation& explanation);

}  // namespace l3c::l2
