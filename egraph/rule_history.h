// What has become of a rule so far: the record that answers "why did it not fire?".
//
// Runs keep it up to date (run.h); EGraph::history() shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace l3c::egraph {

enum class StopReason : uint8_t {
  kSaturated,    // the schedule ended with a step that changed nothing
  kScheduleEnd,  // the schedule ended, the last step still changed something
  kUntil,        // the condition of `:until` holds
  kIterationLimit,
  kNodeLimit,
  kMatchLimit,
  kByteLimit,
  kWorkLimit,
  kTimeLimit,
  kFailed,  // EGraph::failure()
};
std::string_view StopReasonName(StopReason reason);  // "saturated", "node limit", …

struct RuleHistory {
  // The latest search step of the graph (EGraph::search_step()) in which the rule was searched for,
  // or needed no search because nothing was new; 0: none yet.
  uint64_t last_search = 0;
  uint64_t matches = 0;  // found, over all runs
  uint64_t applied = 0;  // and applied
  uint64_t bans = 0;     // by a scheduler (scheduler.h), over all runs
  // For so many more steps of its scheduler it will not be searched for; 0: it is not banned.
  uint64_t banned_for = 0;
  // The limit that kept the matches of its last search from being found or applied.
  std::optional<StopReason> stopped_by;
};

}  // namespace l3c::egraph
