// Makes the choice for the middle one of three repeated blocks one that every copy can have.
#pragma once

#include "egraph/view.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/choice_search.h"

namespace l3c::l0::lower {

// What the middle one of three blocks loads of another, every copy of it will have to find in its
// neighbour, another copy: so the middle one has to store what is the same place of itself. Where
// it does not, because its neighbour does without, it is made to.
// Nothing happens to steps without blocks, nor once the search has spent its work: blocks that do
// not fit are no fault, the whole step is searched then.
void FitBlocks(const egraph::EGraphView& view, const Step& step, const ValueTable& table,
               const CandidateSet& candidates, ChoiceSearch& search);

}  // namespace l3c::l0::lower
