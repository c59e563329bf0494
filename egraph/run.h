// Running rules: schedules, budgets, reports.
//
// One step of a ruleset searches all its rules on the same graph, then applies all matches in order
// (rule by rule, match by match), then rebuilds. A rule sees only matches with at least one row new
// since it last ran. Budgets are counted in work and checked inside search and apply. Work is never
// passed, nodes and matches by no more than what one match adds, bytes by what 256 add; a search
// that comes to the end of its matches, bytes or work is not applied. The graph is rebuilt and
// consistent whatever stopped it, and a later run finds the matches that were left.
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
  // Rows that searches look at, over the whole run, whether they match or not; keys that they look
  // up and primitives that they call. Minutes of one thread.
  uint64_t max_work = 100'000'000'000;
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
  // Rows looked at to find its matches. What rules with the same beginning look at together is
  // shared out among them: the parts of all rules add up to RunReport::work, but for `:until`.
  uint64_t work = 0;
};

struct RunReport {
  StopReason stop = StopReason::kSaturated;
  uint64_t iterations = 0;
  uint64_t matches = 0;
  uint64_t applied = 0;
  uint64_t work = 0;   // what searches looked at, as Budget::max_work counts it
  uint64_t rows = 0;   // live rows at the end
  uint64_t nodes = 0;  // e-nodes at the end
  uint64_t bytes = 0;
  // Of the wall clock, for making loops over rows of the rules: orders of atoms, and the indexes
  // that they use. Of all that is here, this alone differs from run to run.
  double planning_seconds = 0;
  std::vector<RuleReport> rules;  // by rule id; only rules that were searched for
  // The rules that used up the budget, the heaviest first, at most `count`: by rows added where
  // rows or bytes ran out, by rows looked at where work or time did, else by matches.
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
// The same, within the budget's work and seconds. Which of the two ended before that was known goes
// to `stopped`, and then there is no answer.
std::optional<bool> HasMatchWithin(EGraph& graph, const Query& query, bool subsumed_too,
                                   const Budget& budget, StopReason* stopped);

}  // namespace l3c::egraph
