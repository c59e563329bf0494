#include "egraph/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "egraph/apply.h"
#include "egraph/apply_block.h"
#include "egraph/pages.h"
#include "egraph/search.h"

namespace l3c::egraph {
namespace {

using Clock = SearchMeter::Clock;

// Costly limits (bytes, clock) are looked at once in this many applied matches.
constexpr uint32_t kCheckEvery = 256;
// Fewer matches are not worth a block.
constexpr uint64_t kMinBlock = 16;
// In a graph with fewer rows, large blocks and several threads gain nothing, and what they take
// would count.
constexpr uint64_t kMinShared = 65536;
// What large blocks of rules and of rebuilds take beside the graph, threads to begin with, and the
// huge pages of matches and of rows that are not full.
constexpr size_t kSharedRoom = (size_t{3} << 19) + 2 * kHugePage;

// Under a smaller budget of bytes, huge pages that are not full are a share that counts.
constexpr uint64_t kManyBytes = uint64_t{256} << 20;

// A deadline further away than this many seconds is none: the clock cannot hold it.
constexpr double kNoDeadline = 1e9;

// Seconds that are no number set no limit.
std::optional<Clock::time_point> DeadlineAfter(double seconds) {
  if (!(seconds < kNoDeadline)) return std::nullopt;
  seconds = std::max(seconds, -kNoDeadline);
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

StopReason ReasonOf(SearchMeter::Stop stop) {
  switch (stop) {
    case SearchMeter::Stop::kMatches:
      return StopReason::kMatchLimit;
    case SearchMeter::Stop::kBytes:
      return StopReason::kByteLimit;
    case SearchMeter::Stop::kWork:
      return StopReason::kWorkLimit;
    case SearchMeter::Stop::kTime:
      return StopReason::kTimeLimit;
    case SearchMeter::Stop::kNone:
      break;
  }
  return StopReason::kSaturated;
}

}  // namespace

// One run: carries the budget through the schedule.
class Engine {
 public:
  Engine(EGraph& graph, const Budget& budget)
      : graph_(graph),
        budget_(budget),
        search_(graph),
        actions_(graph),
        blocks_(graph),
        reports_(graph.rule_count()) {
    deadline_ = DeadlineAfter(budget.max_seconds);
    WishForHugePages(budget.max_bytes >= kManyBytes);
  }

  RunReport Run(const Schedule& schedule) {
    Outcome outcome;
    if (!graph_.Rebuild()) {
      stopped_ = StopReason::kFailed;
    } else {
      outcome = Carry(schedule);
    }
    search_.Begin();  // forgets the matches
    RunReport report;
    report.stop = stopped_          ? *stopped_
                  : outcome.until   ? StopReason::kUntil
                  : last_step_idle_ ? StopReason::kSaturated
                                    : StopReason::kScheduleEnd;
    report.iterations = iterations_;
    report.matches = matches_;
    report.work = work_;
    report.rows = graph_.RowCount();
    report.nodes = graph_.NodeCount();
    report.bytes = graph_.Bytes();
    report.planning_seconds = std::chrono::duration<double>(planning_).count();
    for (uint32_t r = 0; r < reports_.size(); ++r) {
      if (reports_[r].matches == 0 && reports_[r].work == 0) continue;
      reports_[r].rule = RuleId{r};
      report.applied += reports_[r].applied;
      report.rules.push_back(reports_[r]);
    }
    return report;
  }

 private:
  struct Outcome {
    bool changed = false;
    bool until = false;
  };

  Outcome Carry(const Schedule& schedule) {
    Outcome outcome;
    if (!schedule.until().empty()) {
      SearchMeter::Stop stop = SearchMeter::Stop::kNone;
      const std::optional<bool> met =
          search_.HasMatch(schedule.until()[0], false, LimitsLeft(), &stop);
      work_ += search_.work();
      if (!met) stopped_ = ReasonOf(stop);
      outcome.until = met.value_or(false);
      if (!met || *met) return outcome;
    }
    switch (schedule.kind()) {
      case Schedule::Kind::kRun:
        outcome.changed = RunStep(schedule.ruleset(), schedule.scheduler());
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
    size_t number = 0;  // in search_
    uint64_t count = 0;
  };

  // Search, apply, rebuild. True when the graph changed, or may without any change in a later step
  // because bans end.
  bool RunStep(RulesetId ruleset, SchedulerId scheduler_id) {
    if (iterations_ >= budget_.max_iterations) {
      stopped_ = StopReason::kIterationLimit;
      return false;
    }
    ++iterations_;
    const uint64_t clock = ++graph_.clock_;
    if (const ProofLog* log = graph_.proof_log()) search_time_ = log->now();
    for (Table& table : graph_.tables_) table.Mark(clock);
    Scheduler* scheduler = scheduler_id.valid() ? &graph_.schedulers_[scheduler_id.index] : nullptr;
    if (scheduler != nullptr) scheduler->BeginStep();

    const uint64_t version = graph_.version();
    const std::vector<RuleId>& rules = RulesOf(ruleset);
    Search(rules, clock, scheduler);
    // A search that was cut short is applied no further: what it would have found is unknown, and
    // the next run searches again.
    if (!stopped_) {
      for (size_t i = 0; i < found_.size(); ++i) {
        if (!Apply(found_[i])) {
          for (; i < found_.size(); ++i)
            graph_.histories_[found_[i].rule.index].stopped_by = stopped_;
          break;
        }
        graph_.rule_clock_[found_[i].rule.index] = clock;
      }
      graph_.current_rule_ = kInitial;
    }
    Rebuild();
    last_step_idle_ = graph_.version() == version;
    // Nothing left to do but for what is banned.
    if (last_step_idle_ && !stopped_ && scheduler != nullptr && scheduler->EndFirstBan(rules)) {
      last_step_idle_ = false;
    }
    if (scheduler != nullptr) {
      for (RuleId rule : rules) {
        const uint64_t banned = scheduler->BannedFor(rule);
        graph_.histories_[rule.index].banned_for = banned == 0 ? 0 : banned - 1;
      }
    }
    return !last_step_idle_;
  }

  // The rules that a step of the ruleset searches for, by id.
  const std::vector<RuleId>& RulesOf(RulesetId ruleset) {
    if (rules_of_.size() <= ruleset.index) rules_of_.resize(graph_.ruleset_count());
    auto& known = rules_of_[ruleset.index];
    if (known) return *known;
    known.emplace();
    const std::span<const RulesetId> members = graph_.RulesetMembers(ruleset);
    for (uint32_t r = kCongruence.index + 1; r < graph_.rules_.size(); ++r) {
      const Rule& rule = *graph_.rules_[r];
      if (rule.numerics <= graph_.numerics() &&
          std::binary_search(members.begin(), members.end(), rule.ruleset)) {
        known->push_back(RuleId{r});
      }
    }
    return *known;
  }

  // Fills found_ with the rules that match.
  void Search(const std::vector<RuleId>& rules, uint64_t clock, Scheduler* scheduler) {
    found_.clear();
    search_.Begin();
    const Clock::time_point start = Clock::now();
    size_t number = 0;
    for (RuleId id : rules) {
      if (scheduler != nullptr && scheduler->BannedFor(id) != 0) continue;
      const KeptSlots& kept = search_.Kept(id);
      const uint64_t limit =
          scheduler == nullptr ? JoinForest::kNoLimit : scheduler->MatchLimit(id);
      // Matches without values differ in nothing: one is enough.
      const uint64_t stop_at = kept.alike ? 1 : limit == JoinForest::kNoLimit ? limit : limit + 1;
      const uint64_t seen = graph_.rules_[id.index]->naive ? 0 : graph_.rule_clock_[id.index];
      graph_.histories_[id.index].last_search = clock;
      graph_.histories_[id.index].stopped_by.reset();
      if (search_.Add(id, seen, stop_at)) found_.push_back({id, number++, 0});
    }
    planning_ += Clock::now() - start;
    if (found_.empty()) return;

    SearchMeter::Limits limits = LimitsLeft();
    limits.matches = budget_.max_matches - std::min(budget_.max_matches, matches_);
    const uint64_t bytes = graph_.Bytes();
    limits.bytes = budget_.max_bytes - std::min<uint64_t>(budget_.max_bytes, bytes);
    const SearchMeter::Stop stop = search_.Run(limits, budget_.threads);
    work_ += search_.work();
    match_bytes_ = search_.MatchBytes();
    size_t matched = 0;
    for (const Found& found : found_) {
      const KeptSlots& kept = search_.Kept(found.rule);
      uint64_t count = search_.Count(found.number);
      if (kept.alike) count = std::min<uint64_t>(count, 1);
      matches_ += count;
      RuleHistory& history = graph_.histories_[found.rule.index];
      history.matches += count;
      reports_[found.rule.index].matches += count;
      reports_[found.rule.index].work += search_.Work(found.number);
      if (stop != SearchMeter::Stop::kNone) continue;
      if (scheduler != nullptr && count > scheduler->MatchLimit(found.rule)) {
        scheduler->Ban(found.rule);
        ++history.bans;
        ++reports_[found.rule.index].bans;
        continue;
      }
      if (count == 0) {
        graph_.rule_clock_[found.rule.index] = clock;
        continue;
      }
      found_[matched++] = {found.rule, found.number, count};
    }
    if (stop == SearchMeter::Stop::kNone) {
      found_.resize(matched);
      return;
    }
    stopped_ = ReasonOf(stop);
    for (const Found& found : found_) graph_.histories_[found.rule.index].stopped_by = stopped_;
  }

  // What a query of its own may still take.
  SearchMeter::Limits LimitsLeft() const {
    SearchMeter::Limits limits;
    limits.work = budget_.max_work - std::min(budget_.max_work, work_);
    limits.deadline = deadline_;
    return limits;
  }

  void Rebuild() {
    if (!deadline_) {
      if (!graph_.Rebuild(Pool())) stopped_ = StopReason::kFailed;
      return;
    }
    const size_t rows = graph_.RowCount();
    const Clock::time_point start = Clock::now();
    if (!graph_.Rebuild(Pool())) stopped_ = StopReason::kFailed;
    const std::chrono::duration<double> took = Clock::now() - start;
    rebuild_seconds_per_row_ = took.count() / static_cast<double>(std::max<size_t>(rows, 1));
  }

  // Whether the deadline would pass while the step ends as it must, by making the graph congruent:
  // that takes about as long for each row as it took the last time.
  bool OutOfTime() const {
    if (!deadline_) return false;
    const std::chrono::duration<double> left = *deadline_ - Clock::now();
    const double rows = graph_.NeedsRebuild() ? static_cast<double>(graph_.RowCount()) : 0;
    return left.count() < rows * rebuild_seconds_per_row_;
  }

  // The threads that share the work on the graph as it is.
  WorkerPool* Pool() {
    return graph_.RowCount() < kMinShared ? nullptr : search_.Pool(budget_.threads);
  }

  // The costly limit that `growth`, which is about to be allocated, would pass, or time has.
  std::optional<StopReason> CostlyLimit(size_t growth) const {
    if (graph_.RowCount() >= kMinShared) growth += kSharedRoom;
    if (graph_.Bytes() + match_bytes_ + growth > budget_.max_bytes) return StopReason::kByteLimit;
    if (OutOfTime()) return StopReason::kTimeLimit;
    return std::nullopt;
  }

  // What the graph may grow by with `matches` more of `rule`. Hash slots double at once, and the
  // old ones are there meanwhile: counted afterwards, that would be too late.
  size_t Growth(const Rule& rule, uint32_t matches) {
    const auto adds = [](const Action& action) {
      return action.kind == Action::Kind::kAdd || action.kind == Action::Kind::kAddAs ||
             action.kind == Action::Kind::kSet;
    };
    new_rows_.resize(graph_.tables_.size());
    for (const Action& action : rule.actions) {
      if (adds(action)) new_rows_[action.function.index] += matches;
    }
    size_t bytes = 0;
    uint32_t rows = 0;
    for (const Action& action : rule.actions) {
      if (!adds(action)) continue;
      const uint32_t here = std::exchange(new_rows_[action.function.index], 0);
      if (here == 0) continue;
      const Table& table = graph_.tables_[action.function.index];
      bytes += table.BytesWith(here) - table.Bytes();
      rows += here;
    }
    return bytes + graph_.union_find_.BytesWith(rows) - graph_.union_find_.Bytes();
  }

  // How many of the next `left` matches can be applied in one block: so many that no limit can be
  // passed, and small ones up to the next look at the costly limits. 0: one at a time.
  uint32_t BlockSize(const Rule& rule, uint64_t left) {
    if (left < kMinBlock) return 0;
    const auto has_room = [&](uint64_t count) {
      return graph_.RowCount() + count * blocks_.RowsPerMatch() < budget_.max_nodes;
    };
    constexpr uint32_t kLarge = BlockRunner::kLarge;
    if (left >= kLarge && graph_.RowCount() >= kMinShared && has_room(kLarge)) {
      if (!CostlyLimit(Growth(rule, kLarge))) return kLarge;
      // Room for what is to come counts too. Near a limit there is none beforehand.
      ExpectRows(rule, 0);
      if (!CostlyLimit(Growth(rule, kLarge))) return kLarge;
    }
    const uint64_t count =
        std::min({uint64_t{BlockRunner::kSmall}, left, kCheckEvery - 1 - applied_ % kCheckEvery});
    return has_room(count) ? static_cast<uint32_t>(count) : 0;
  }

  // Tells the tables what `left` more matches of the rule may add, that they need not grow again
  // and again: half of it, for the later a match comes the more often its rows are there.
  void ExpectRows(const Rule& rule, uint64_t left) {
    for (size_t a = 0; a < rule.actions.size(); ++a) {
      if (rule.actions[a].kind != Action::Kind::kAdd) continue;
      Table& table = graph_.tables_[rule.actions[a].function.index];
      const uint64_t coming = blocks_.Expected(a, left / 2);
      table.Expect(coming == 0 ? 0 : static_cast<uint32_t>(table.live_count() + coming));
    }
  }

  // False when the run stopped before the last match.
  bool Apply(const Found& found) {
    const Rule& rule = *graph_.rules_[found.rule.index];
    const std::vector<uint32_t>& used = search_.Kept(found.rule).slots;
    const auto width = static_cast<uint32_t>(used.size());
    RuleReport& report = reports_[found.rule.index];
    graph_.current_rule_ = found.rule;
    const std::span<uint32_t> slots = actions_.Slots(rule);
    const bool in_blocks =
        found.count >= kMinBlock && width != 0 && blocks_.Begin(rule, used, Pool());
    const uint64_t rows_before = graph_.RowCount();
    uint64_t left = found.count;
    uint32_t block = 0;  // matches that are to be applied together, those taken so far included
    const uint64_t applied_before = applied_;
    const bool complete = search_.ForEachRun(found.number, [&](std::span<const uint32_t> run) {
      const uint32_t* values = run.data();
      uint64_t count = std::min<uint64_t>(left, width == 0 ? 1 : run.size() / width);
      for (; count != 0; --count, --left, values += width) {
        if (in_blocks && blocks_.taken() == 0) block = BlockSize(rule, left);
        if (block != 0) {
          const auto taken =
              static_cast<uint32_t>(std::min<uint64_t>(count, block - blocks_.taken()));
          blocks_.Take(values, taken);
          values += (taken - 1) * width;
          count -= taken - 1;
          left -= taken - 1;
          if (blocks_.taken() != block) continue;
          blocks_.Apply();
          applied_ += block;
          report.applied += block;
          if (block == BlockRunner::kLarge) ExpectRows(rule, left - 1);
          continue;
        }
        if (graph_.RowCount() >= budget_.max_nodes) {
          stopped_ = StopReason::kNodeLimit;
          return false;
        }
        if (++applied_ % kCheckEvery == 0) {
          stopped_ = CostlyLimit(Growth(rule, kCheckEvery));
          if (stopped_) return false;
        }
        for (uint32_t i = 0; i < width; ++i) slots[used[i]] = values[i];
        ProofLog* log = graph_.proof_log();
        if (log != nullptr) [[unlikely]] {
          log->BeginRule(found.rule, slots.first(width), search_time_);
        }
        const bool fine = actions_.Apply(rule);
        if (log != nullptr) [[unlikely]]
          log->End();
        if (!fine) {
          stopped_ = StopReason::kFailed;
          return false;
        }
        ++report.applied;
      }
      return true;
    });
    if (in_blocks) ExpectRows(rule, 0);
    graph_.histories_[found.rule.index].applied += applied_ - applied_before;
    const uint64_t rows = graph_.RowCount();
    report.rows += rows - std::min<uint64_t>(rows, rows_before);
    return complete;
  }

  EGraph& graph_;
  const Budget budget_;
  RuleSearch search_;
  ActionRunner actions_;
  BlockRunner blocks_;
  std::optional<Clock::time_point> deadline_;
  Clock::duration planning_{};
  double rebuild_seconds_per_row_ = 0;  // of the last rebuild
  std::optional<StopReason> stopped_;
  uint64_t iterations_ = 0;
  uint64_t matches_ = 0;
  uint64_t work_ = 0;
  uint64_t applied_ = 0;
  uint64_t match_bytes_ = 0;  // held by the matches of this step
  uint32_t search_time_ = 0;  // see ProofLog::Application
  bool last_step_idle_ = true;
  std::vector<Found> found_;
  std::vector<std::optional<std::vector<RuleId>>> rules_of_;  // by ruleset
  std::vector<uint32_t> new_rows_;                            // by function, for Growth()
  std::vector<RuleReport> reports_;                           // by rule
};

std::vector<RuleReport> RunReport::Heaviest(size_t count) const {
  const bool by_rows = stop == StopReason::kNodeLimit || stop == StopReason::kByteLimit;
  const bool by_work = stop == StopReason::kWorkLimit || stop == StopReason::kTimeLimit;
  std::vector<RuleReport> heaviest = rules;
  std::stable_sort(heaviest.begin(), heaviest.end(), [&](const RuleReport& a, const RuleReport& b) {
    if (by_rows && a.rows != b.rows) return a.rows > b.rows;
    if (by_work && a.work != b.work) return a.work > b.work;
    return a.matches > b.matches;
  });
  if (heaviest.size() > count) heaviest.resize(count);
  return heaviest;
}

RunReport RunSchedule(EGraph& graph, const Schedule& schedule, const Budget& budget) {
  return Engine(graph, budget).Run(schedule);
}

RunReport RunRuleset(EGraph& graph, RulesetId ruleset, const Budget& budget) {
  return RunSchedule(graph, Schedule::Saturate(Schedule::Run(ruleset)), budget);
}

bool HasMatch(EGraph& graph, const Query& query, bool subsumed_too) {
  if (!graph.Rebuild()) return false;
  SearchMeter::Stop stop;
  return RuleSearch(graph).HasMatch(query, subsumed_too, {}, &stop).value_or(false);
}

std::optional<bool> HasMatchWithin(EGraph& graph, const Query& query, bool subsumed_too,
                                   const Budget& budget, StopReason* stopped) {
  if (!graph.Rebuild()) return false;
  SearchMeter::Limits limits;
  limits.work = budget.max_work;
  limits.deadline = DeadlineAfter(budget.max_seconds);
  SearchMeter::Stop stop = SearchMeter::Stop::kNone;
  const std::optional<bool> holds = RuleSearch(graph).HasMatch(query, subsumed_too, limits, &stop);
  if (!holds) *stopped = ReasonOf(stop);
  return holds;
}

}  // namespace l3c::egraph
