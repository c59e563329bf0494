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
#include <vector>

#include "egraph/egraph.h"
#include "egraph/ids.h"
#include "egraph/rule_history.h"
#include "egraph/schedule.h"

namespace l3c::egraph {

struct Budget {
  uint64_t max_iterations = std::numeric_limits<uint64_t>::max();  // steps of a ruleset
  uint64_t max_nodes = 1'000'000;                                  // live rows of all tables
  uint64_t max_matches = 100'000'000;                              // collected, over the whole run
  uint64_t max_bytes = uint64_t{2} << 30;                          // EGraph::Bytes() plus matches
  // Aborts the run; what came out then depends on the machine and is marked so.
  double max_seconds = std::numeric_limits<double>::infinity();
  // Threads that search; no result depends on it. Small steps use one.
  uint32_t threads = 1;
};

struct RuleReport {
  RuleId rule;
  uint64_t matches = 0;  // found
  uint64_t applied = 0;  // found and applied before the run stopped
  uint64_t rows = 0;     // live rows that applying it added, rebuilds apart
  uint64_t bans = 0;     // by a scheduler
};

struct RunReport {
  StopReason stop = StopReason::kSaturated;
  uint64_t iterations = 0;
  uint64_t matches = 0;
  uint64_t applied = 0;
  uint64_t work = 0;   // rows and keys that searches looked at
  uint64_t rows = 0;   // live rows at the end
  uint64_t nodes = 0;  // e-nodes at the end
  uint64_t bytes = 0;
  std::vector<RuleReport> rules;  // by rule id; only rules that matched
  // The rules that used up the budget, the heaviest first, at most `count`: by rows added where
  // rows or bytes ran out, else by matches.
  std::vector<RuleReport> Heaviest(size_t count) const;

  // False when wall clock shaped the result.
  bool reproducible() const { return stop != StopReason::kTimeLimit; }
  // True when a budget or a failure, not the schedule, ended the run.
  bool cut_short() const { return stop >= StopReason::kIterationLimit; }
};

RunReport RunSchedule(EGraph& graph, const Schedule& schedule, const Budget& budget = {});
// Saturates one ruleset.
RunReport RunRuleset(EGraph& graph, RulesetId ruleset, const Budget& budget = {});
// True when the query has a match in the (rebuilt) graph; `subsumed_too`: also among subsumed rows.
bool HasMatch(EGraph& graph, const Query& query, bool subsumed_too = false);
// The same; nothing when `max_seconds` passed before that was known.
std::optional<bool> HasMatchWithin(EGraph& graph, const Query& query, bool subsumed_too,
                                   double max_seconds);

}  // namespace l3c::egraph
