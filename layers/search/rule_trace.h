// What became of the rules that the user brought, where decisions cite the rules behind them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/why_not.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::search {

// The trace of the rule in `explanation`, added where there is none yet.
RuleTrace& TraceOf(const egraph::Rule& rule, Explanation& explanation);

// "2 of 3 premises hold at best, with a = x; fails: (shape a)", or why the rule did not run.
std::string WhyNoMatchText(const egraph::WhyNotRule& why);

// Loads the files of `rules` that belong to the lowering. The first error, or "".
std::string LoadAddedRules(egraph::EGraph& graph, const std::vector<AddedRules>& rules,
                           std::string_view lowering);

// For the rules from `first` on: won are the decisions that cite them.
void TraceRules(egraph::EGraph& graph, uint32_t first, Explanation& explanation);

}  // namespace l3c::search
