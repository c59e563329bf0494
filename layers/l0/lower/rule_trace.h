// What became of the rules that the user brought: where each fired, where the plan is made of what
// it gave and where not, or why it never matched.
#pragma once

#include <span>

#include "egraph/extract/extract.h"
#include "egraph/view.h"
#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/explain.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

// Adds to the traces of `explanation`; a rule that is there already, from another step, gets the
// places of this one as well. `best` is the choice that `chosen` was read from.
void TraceRules(egraph::EGraph& graph, const egraph::EGraphView& view,
                const egraph::Extraction& best, const ChooseResult& chosen,
                std::span<const egraph::RuleId> rules, const Explainer& explainer,
                search::Explanation& explanation);

}  // namespace l3c::l0::lower
