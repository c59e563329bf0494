// A set of choices that pay together only: the loss waits for a walk over the rows.
#pragma once

#include <vector>

#include "egraph/view.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/choice_search.h"

namespace l3c::l0::lower {

// What only reports need can wait for a walk over the rows that is made anyway. It waits with
// everything behind it or not at all, and pays where the walk makes all that it needs of a row
// itself, so that nobody else has to walk them.
std::vector<ChoiceSearch::Choice> WaitForWalk(const CandidateSet& candidates,
                                              const egraph::EGraphView& view);

}  // namespace l3c::l0::lower
