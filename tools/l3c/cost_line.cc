#include "tools/l3c/cost_line.h"

#include <optional>

#include "nlohmann/json.hpp"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {

void PrintCostLine(Compilation& compilation) {
  const std::optional<search::CostComponent>& searched = compilation.searched_step();
  if (!searched) return;
  nlohmann::ordered_json line = {
      {"event", "cost"}, {"step_time", searched->value}, {"evidence", searched->evidence}};
  if (const std::optional<cost::StepTime> step = compilation.PredictedStep()) {
    line["predicted_step_time"] = step->seconds;
  }
  PrintJsonLine(line);
}

}  // namespace l3c::tools
