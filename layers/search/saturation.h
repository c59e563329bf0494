// A run of the rules that the budget cut short, as the failure of a search.
#pragma once

#include <string>

#include "egraph/run.h"
#include "layers/search/lowering.h"

namespace l3c::search {

// `report.cut_short()` must hold. What ran out is named with its own figures, not always the work.
Timeout CutShort(const egraph::RunReport& report, const Budget& budget, std::string doing,
                 std::string hint);

}  // namespace l3c::search
