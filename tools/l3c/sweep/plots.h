// The plots of a sweep, each where its points say something:
//
//   cost_over_budget.svg  what a larger budget buys: where budgets of one kind vary
//   egraph_growth.svg     e-nodes under these budgets
//   rule_time.svg         what each rule that was left out takes of the optimisation's time
//   rule_worth.svg        what the step costs without it, over what it costs with it
//   pareto.svg            time of the optimisation against cost of its result, and the front
//
// The cost is the measured step where steps were run, else the predicted one, else that of an
// extraction.
#pragma once

#include <string>
#include <vector>

#include "tools/l3c/sweep/summary.h"

namespace l3c::tools::sweep {

struct Plot {
  std::string file;
  std::string svg;
};
std::vector<Plot> PlotsOf(const std::vector<Summary>& points);

}  // namespace l3c::tools::sweep
