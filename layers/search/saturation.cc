#include "layers/search/saturation.h"

#include <utility>

namespace l3c::search {

Timeout CutShort(const egraph::RunReport& report, const Budget& budget, std::string doing,
                 std::string hint) {
  if (report.stop == egraph::StopReason::kNodeLimit) {
    return OutOf("nodes", report.rows, budget.egraph_nodes, std::move(doing), std::move(hint));
  }
  if (report.stop == egraph::StopReason::kByteLimit) {
    Timeout timeout;
    timeout.resource = "bytes";
    timeout.spent = report.bytes;
    timeout.budget = egraph::Budget().max_bytes;
    timeout.doing = std::move(doing);
    timeout.hint = hint.empty() ? "lower a smaller program" : std::move(hint);
    return timeout;
  }
  return OutOf("work", report.matches, budget.work, std::move(doing), std::move(hint));
}

Timeout OutOf(std::string resource, uint64_t spent, uint64_t budget, std::string doing,
              std::string hint) {
  Timeout timeout;
  timeout.hint = "raise it with --budget " + resource + "=N";
  if (!hint.empty()) timeout.hint += ", or " + hint;
  timeout.spent = spent;
  timeout.budget = budget;
  timeout.doing = std::move(doing);
  timeout.resource = std::move(resource);
  return timeout;
}

}  // namespace l3c::search
