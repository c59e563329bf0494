// --rules FILE.egg: rules of the user's own, checked before they may shape a plan.
#pragma once

#include <optional>
#include <vector>

#include "layers/search/lowering.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

// Reads and checks options.rule_files. Nothing after printing what is wrong: a file that is no rule
// file, or a rule that does not hold and would run under --numerics.
std::optional<std::vector<search::AddedRules>> ReadUserRules(const Options& options);

}  // namespace l3c::tools
