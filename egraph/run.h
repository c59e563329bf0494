// Running rules: schedules, budgets, reports.
//
// One step of a ruleset searches all its rules on the same graph, then applies all matches in order
// (rule by rule, match by match), then rebuilds. A rule sees only matches with at least one row new
// since it last ran. Budgets are counted in work and checked inside search and apply, so a run
// overshoots by at most one match; the graph is rebuilt and consistent whatever stopped it, and a
// later run finds the matches that were left.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/ids.h"

namespace l3c::egraph {

struct Budget {
  uint64_t max_iterations = std::numeric_limits<uint64_t>::max();  // steps of a ruleset
  uint64_t max_nodes = 1'000'000;                                  // live rows of all tables
  uint64_t max_matches = 100'000'000;                              // collected, over the whole run
  uint64_t max_bytes = uint64_t{2} << 30;                          // EGraph::Bytes() plus matches
  // Aborts the run; what came out then depends on the machine and is marked so.
  double max_seconds = std::numeric_limits<double>::infinity();
};

enum class StopReason : uint8_t {
  kSaturated,    // the schedule ended with a step that changed nothing
  kScheduleEnd,  // the schedule ended, the last step still changed something
  kUntil,        // the condition of `:until` holds
  kIterationLimit,
  kNodeLimit,
  kMatchLimit,
  kByteLimit,
  kTimeLimit,
  kFailed,  // EGraph::failure()
};
std::string_view StopReasonName(StopReason reason);  // "saturated", "node limit", …

struct RuleReport {
  RuleId rule;
  uint64_t matches = 0;  // found
  uint64_t applied = 0;  // found and applied before the run stopped
};

struct RunReport {
  StopReason stop = StopReason::kSaturated;
  uint64_t iterations = 0;
  uint64_t matches = 0;
  uint64_t applied = 0;
  uint64_t rows = 0;   // live rows at the end
  uint64_t nodes = 0;  // e-nodes at the end
  uint64_t bytes = 0;
  std::vector<RuleReport> rules;  // by rule id; only rules that matched

  // False when wall clock shaped the result.
  bool reproducible() const { return stop != StopReason::kTimeLimit; }
  // True when a budget or a failure, not the schedule, ended the run.
  bool cut_short() const { return stop >= StopReason::kIterationLimit; }
};

class Schedule {
 public:
  enum class Kind : uint8_t { kRun, kRepeat, kSaturate, kSequence };

  static Schedule Run(RulesetId ruleset);  // one step
  static Schedule Repeat(uint64_t times, Schedule body);
  static Schedule Saturate(Schedule body);
  static Schedule Sequence(std::vector<Schedule> parts);
  // A Run whose `query` has a match does nothing, and so ends a loop around it in which nothing else
  // changes the graph either.
  Schedule Until(Query query) &&;

  Kind kind() const { return kind_; }
  RulesetId ruleset() const { return ruleset_; }
  uint64_t times() const { return times_; }
  const std::vector<Schedule>& parts() const { return parts_; }
  const std::vector<Query>& until() const { return until_; }  // none or one

 private:
  Kind kind_ = Kind::kSequence;
  RulesetId ruleset_;
  uint64_t times_ = 1;
  std::vector<Schedule> parts_;
  std::vector<Query> until_;
};

RunReport RunSchedule(EGraph& graph, const Schedule& schedule, const Budget& budget = {});
// Saturates one ruleset.
RunReport RunRuleset(EGraph& graph, RulesetId ruleset, const Budget& budget = {});
// True when the query has a match in the (rebuilt) graph; `subsumed_too`: also among subsumed rows.
bool HasMatch(EGraph& graph, const Query& query, bool subsumed_too = false);

}  // namespace l3c::egraph
