#include "egraph/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "egraph/apply.h"
#include "egraph/match.h"

namespace l3c::egraph {
namespace {

// Costly limits (bytes, clock) are looked at once in this many matches.
constexpr uint64_t kCheckEvery = 256;

}  // namespace

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
    case StopReason::kTimeLimit:
      return "time limit";
    case StopReason::kFailed:
      return "failed";
  }
  return "failed";
}

Schedule Schedule::Run(RulesetId ruleset) {
  Schedule s;
  s.kind_ = Kind::kRun;
  s.ruleset_ = ruleset;
  return s;
}

Schedule Schedule::Repeat(uint64_t times, Schedule body) {
  Schedule s;
  s.kind_ = Kind::kRepeat;
  s.times_ = times;
  s.parts_.push_back(std::move(body));
  return s;
}

Schedule Schedule::Saturate(Schedule body) {
  Schedule s;
  s.kind_ = Kind::kSaturate;
  s.parts_.push_back(std::move(body));
  return s;
}

Schedule Schedule::Sequence(std::vector<Schedule> parts) {
  Schedule s;
  s.kind_ = Kind::kSequence;
  s.parts_ = std::move(parts);
  return s;
}

Schedule Schedule::Until(Query query) && {
  until_.assign(1, std::move(query));
  return std::move(*this);
}

// One run: carries the budget through the schedule.
class Engine {
 public:
  Engine(EGraph& graph, const Budget& budget)
      : graph_(graph),
        budget_(budget),
        matcher_(graph),
        actions_(graph),
        start_(std::chrono::steady_clock::now()),
        reports_(graph.rule_count()) {}

  RunReport Run(const Schedule& schedule) {
    Outcome outcome;
    if (!graph_.Rebuild()) {
      stopped_ = StopReason::kFailed;
    } else {
      outcome = Carry(schedule);
    }
    RunReport report;
    report.stop = stopped_          ? *stopped_
                  : outcome.until   ? StopReason::kUntil
                  : last_step_idle_ ? StopReason::kSaturated
                                    : StopReason::kScheduleEnd;
    report.iterations = iterations_;
    report.matches = matches_;
    report.rows = graph_.RowCount();
    report.nodes = graph_.NodeCount();
    report.bytes = graph_.Bytes();
    for (uint32_t r = 0; r < reports_.size(); ++r) {
      if (reports_[r].matches == 0) continue;
      reports_[r].rule = RuleId{r};
      report.applied += reports_[r].applied;
      report.rules.push_back(reports_[r]);
    }
    return report;
  }

  bool HasMatch(const Query& query, bool subsumed_too = false) {
    matcher_.SeeSubsumed(subsumed_too);
    Matcher::Delta all;
    all.old_rows.assign(query.atoms.size(), 0);
    const bool none = matcher_.ForEachMatch(query, all, [](const uint32_t*) { return false; });
    matcher_.SeeSubsumed(false);
    return !none;
  }

 private:
  struct Outcome {
    bool changed = false;
    bool until = false;
  };

  Outcome Carry(const Schedule& schedule) {
    Outcome outcome;
    if (!schedule.until().empty() && HasMatch(schedule.until()[0])) {
      outcome.until = true;
      return outcome;
    }
    switch (schedule.kind()) {
      case Schedule::Kind::kRun:
        outcome.changed = RunStep(schedule.ruleset());
        break;
      case Schedule::Kind::kRepeat:
      case Schedule::Kind::kSaturate:
        for (uint64_t i = 0; schedule.kind() == Schedule::Kind::kSaturate || i < schedule.times();
             ++i) {
          const Outcome body = Carry(schedule.parts()[0]);
          outcome.changed |= body.changed;
          outcome.until = body.until;
          if (stopped_ || !body.changed) break;
        }
        break;
      case Schedule::Kind::kSequence:
        for (const Schedule& part : schedule.parts()) {
          const Outcome body = Carry(part);
          outcome.changed |= body.changed;
          outcome.until = body.until;
          if (stopped_) break;
        }
        break;
    }
    return outcome;
  }

  struct Found {
    RuleId rule;
    size_t begin = 0;  // into match_values_
    uint64_t count = 0;
  };

  // Search, apply, rebuild. True when the graph changed.
  bool RunStep(RulesetId ruleset) {
    if (iterations_ >= budget_.max_iterations) {
      stopped_ = StopReason::kIterationLimit;
      return false;
    }
    ++iterations_;
    const uint64_t clock = ++graph_.clock_;
    if (const ProofLog* log = graph_.proof_log()) search_time_ = log->now();
    for (Table& table : graph_.tables_) table.Mark(clock);

    match_values_.clear();
    found_.clear();
    const uint64_t version = graph_.version();
    const std::span<const RulesetId> members = graph_.RulesetMembers(ruleset);
    for (uint32_t r = kCongruence.index + 1; r < graph_.rules_.size() && !stopped_; ++r) {
      const Rule& rule = *graph_.rules_[r];
      if (rule.numerics <= graph_.numerics() &&
          std::binary_search(members.begin(), members.end(), rule.ruleset)) {
        Search(RuleId{r}, clock);
      }
    }
    // A search that was cut short is applied no further: what it would have found is unknown, and
    // the next run searches again.
    if (!stopped_) {
      for (const Found& found : found_) {
        if (!Apply(found)) break;
        graph_.rule_clock_[found.rule.index] = clock;
      }
      graph_.current_rule_ = kInitial;
    }
    if (!graph_.Rebuild()) stopped_ = StopReason::kFailed;
    last_step_idle_ = graph_.version() == version;
    return !last_step_idle_;
  }

  void Search(RuleId id, uint64_t clock) {
    const Rule& rule = *graph_.rules_[id.index];
    const uint64_t seen = rule.naive ? 0 : graph_.rule_clock_[id.index];
    bool any_new = rule.query.atoms.empty() && seen == 0;
    delta_.old_rows.clear();
    for (const Atom& atom : rule.query.atoms) {
      const Table& table = graph_.tables_[atom.function.index];
      delta_.old_rows.push_back(seen == 0 ? 0 : table.RowsAt(seen));
      any_new |= delta_.old_rows.back() < table.row_count();
    }
    if (!any_new) return;

    // Only what the actions read is kept of a match, but for proofs.
    const std::vector<uint32_t>& used = UsedSlots(id);
    Found found{id, match_values_.size(), 0};
    const bool complete = matcher_.ForEachMatch(rule.query, delta_, [&](const uint32_t* slots) {
      if (matches_ + found.count >= budget_.max_matches) {
        stopped_ = StopReason::kMatchLimit;
        return false;
      }
      ++found.count;
      for (uint32_t slot : used) match_values_.push_back(slots[slot]);
      // Matches without values differ in nothing: one is enough.
      return !used_slots_[id.index].alike && (found.count % kCheckEvery != 0 || WithinLimits());
    });
    matches_ += found.count;
    reports_[id.index].matches += found.count;
    if (complete && found.count == 0) {
      graph_.rule_clock_[id.index] = clock;
      return;
    }
    found_.push_back(found);
  }

  // Bytes and clock.
  bool WithinLimits() {
    const uint64_t bytes = graph_.Bytes() + match_values_.size() * sizeof(uint32_t);
    if (bytes > budget_.max_bytes) {
      stopped_ = StopReason::kByteLimit;
    } else if (budget_.max_seconds < std::numeric_limits<double>::infinity() &&
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() >
                   budget_.max_seconds) {
      stopped_ = StopReason::kTimeLimit;
    }
    return !stopped_;
  }

  const std::vector<uint32_t>& UsedSlots(RuleId id) {
    if (used_slots_.size() <= id.index) used_slots_.resize(graph_.rule_count());
    auto& entry = used_slots_[id.index];
    if (entry.known) return entry.slots;
    entry.known = true;
    const Rule& rule = *graph_.rules_[id.index];
    std::vector<uint8_t> used(rule.query.slot_sorts.size(), 0);
    const auto use = [&](const Operand& operand) {
      if (!operand.is_constant && operand.bits < used.size()) used[operand.bits] = 1;
    };
    for (const Action& action : rule.actions) {
      for (const Operand& operand : action.args) use(operand);
      if (action.kind == Action::Kind::kSet || action.kind == Action::Kind::kAddAs) {
        use(action.value);
      }
    }
    entry.alike = std::find(used.begin(), used.end(), 1) == used.end();
    // A proof names the values of all variables.
    if (graph_.proof_log() != nullptr) used.assign(used.size(), 1);
    for (uint32_t slot = 0; slot < used.size(); ++slot) {
      if (used[slot]) entry.slots.push_back(slot);
    }
    return entry.slots;
  }

  // False when the run stopped before the last match.
  bool Apply(const Found& found) {
    const Rule& rule = *graph_.rules_[found.rule.index];
    const std::vector<uint32_t>& used = UsedSlots(found.rule);
    graph_.current_rule_ = found.rule;
    const std::span<uint32_t> slots = actions_.Slots(rule);
    const uint32_t* values = match_values_.data() + found.begin;
    for (uint64_t m = 0; m < found.count; ++m, values += used.size()) {
      if (graph_.RowCount() >= budget_.max_nodes) {
        stopped_ = StopReason::kNodeLimit;
        return false;
      }
      if (++applied_ % kCheckEvery == 0 && !WithinLimits()) return false;
      for (size_t i = 0; i < used.size(); ++i) slots[used[i]] = values[i];
      ProofLog* log = graph_.proof_log();
      if (log != nullptr) [[unlikely]] {
        log->BeginRule(found.rule, slots.first(used.size()), search_time_);
      }
      const bool fine = actions_.Apply(rule);
      if (log != nullptr) [[unlikely]] log->End();
      if (!fine) {
        stopped_ = StopReason::kFailed;
        return false;
      }
      ++reports_[found.rule.index].applied;
    }
    return true;
  }

  EGraph& graph_;
  const Budget budget_;
  Matcher matcher_;
  ActionRunner actions_;
  const std::chrono::steady_clock::time_point start_;
  std::optional<StopReason> stopped_;
  uint64_t iterations_ = 0;
  uint64_t matches_ = 0;
  uint64_t applied_ = 0;
  bool last_step_idle_ = true;
  Matcher::Delta delta_;
  std::vector<Found> found_;
  std::vector<uint32_t> match_values_;
  struct Used {
    bool known = false;
    bool alike = false;  // no action reads a slot of the query
    std::vector<uint32_t> slots;
  };
  std::vector<Used> used_slots_;  // by rule
  uint32_t search_time_ = 0;      // see ProofLog::Application
  std::vector<RuleReport> reports_;                                 // by rule
};

RunReport RunSchedule(EGraph& graph, const Schedule& schedule, const Budget& budget) {
  return Engine(graph, budget).Run(schedule);
}

RunReport RunRuleset(EGraph& graph, RulesetId ruleset, const Budget& budget) {
  return RunSchedule(graph, Schedule::Saturate(Schedule::Run(ruleset)), budget);
}

bool HasMatch(EGraph& graph, const Query& query, bool subsumed_too) {
  if (!graph.Rebuild()) return false;
  return Engine(graph, Budget{}).HasMatch(query, subsumed_too);
}

}  // namespace l3c::egraph
