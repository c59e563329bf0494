#include "layers/search/saturation.h"

#include <utility>

namespace l3c::search {

Timeout CutShort(const egraph::RunReport& report, const Budget& budget, std::string doing,
                 std::string hint) {
  Timeout timeout;
  timeout.doing = std::move(doing);
  timeout.hint = std::move(hint);
  if (report.stop == egraph::StopReason::kNodeLimit) {
    timeout.resource = "nodes";
    timeout.spent = report.rows;
    timeout.budget = budget.egraph_nodes;
  } else {
    timeout.spent = report.matches;
    timeout.budget = budget.work;
  }
  return timeout;
}

}  // namespace l3c::search
