#include "egraph/rule_history.h"

namespace l3c::egraph {

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kSaturated:
      return "saturated";
    case StopReason::kScheduleEnd:
      return "end of schedule";
    case StopReason::kUntil:
      return "condition reached";
    case StopReason::kIterationLimit:
      return "iteration limit";
    case StopReason::kNodeLimit:
      return "node limit";
    case StopReason::kMatchLimit:
      return "match limit";
    case StopReason::kByteLimit:
      return "byte limit";
    case StopReason::kWorkLimit:
      return "work limit";
    case StopReason::kTimeLimit:
      return "time limit";
    case StopReason::kFailed:
      return "failed";
  }
  return "failed";
}

}  // namespace l3c::egraph
