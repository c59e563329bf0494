// Why the search for a method ends without one, and the way out.
#pragma once

#include <cstdint>

#include "layers/l2/candidate.h"
#include "layers/l2/space_graph.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// Of a graph none of whose candidates is legal: the budget that excludes them all, and what it
// would have to be; or that the forced choices exclude one another.
search::SearchFailure Infeasible(const Space& space, SpaceGraph& graph, const Restriction& forced);

// `scored` candidates would be scored one by one where `bound` may be: names the constraint whose
// tightening takes most away.
search::SearchFailure TooMany(const Space& space, uint64_t scored, uint64_t bound);

}  // namespace l3c::l2
