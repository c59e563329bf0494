// A run of the rules that the budget cut short, as the failure of a search.
#pragma once

#include <string>

#include "egraph/run.h"
#include "layers/search/lowering.h"

namespace l3c::search {

// `report.cut_short()` must hold. What ran out is named with its own figures and the option that
// raises it. `hint`: another way out, in the imperative; "" where there is none.
Timeout CutShort(const egraph::RunReport& report, const Budget& budget, std::string doing,
                 std::string hint);

// That a resource of the budget, "work" or "nodes", has been spent otherwise.
Timeout OutOf(std::string resource, uint64_t spent, uint64_t budget, std::string doing,
              std::string hint);

}  // namespace l3c::search
