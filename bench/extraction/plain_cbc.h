// The extraction problem handed to COIN-OR Cbc as it stands: what exact extraction is compared
// with.
//
// One binary a class and one an e-node; a class chosen has one e-node chosen, an e-node chosen has
// its children chosen, the roots are chosen. Cycles are blocked as they come up: a solution with
// cycles gives an inequality for each, and Cbc starts again, until a solution has none. No
// reductions, no incumbent, no cuts of ours; only what the roots can reach is handed over.
#pragma once

#include <limits>
#include <span>

#include "egraph/extract/node_graph.h"
#include "egraph/extract/time_limit.h"

namespace l3c::bench {

struct PlainCbcResult {
  bool proven = false;                                    // optimal
  double cost = std::numeric_limits<double>::infinity();  // of the best acyclic solution seen
};

// Prices that are not finite forbid. `time` covers building the model too.
PlainCbcResult SolvePlainCbc(const egraph::NodeGraph& graph, std::span<const double> prices,
                             std::span<const egraph::ClassRef> roots,
                             const egraph::TimeLimit& time);

}  // namespace l3c::bench
