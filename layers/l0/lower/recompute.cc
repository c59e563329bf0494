#include "layers/l0/lower/recompute.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "layers/l0/lower/arena.h"
#include "layers/l0/lower/kept_terms.h"
#include "layers/l0/plan.h"
#include "layers/search/saturation.h"
#include "layers/support/diagnostics.h"
#include "layers/support/units.h"

namespace l3c::l0::lower {

LaunchGraph GraphOf(const StepPlan& plan, const ValueTable& table, std::vector<Storage>& storages,
                    std::optional<uint32_t> memory) {
  LaunchGraph graph;
  std::map<Storage, int32_t> numbers;
  const auto value = [&](const Storage& storage) {
    const auto [it, fresh] = numbers.try_emplace(storage, static_cast<int32_t>(storages.size()));
    if (fresh) {
      storages.push_back(storage);
      const Value& held = table.values[storage.value];
      const int64_t bytes = memory && held.memory != *memory ? 0 : Bytes(held);
      graph.values.push_back({(bytes + kAlignment - 1) / kAlignment * kAlignment, -1});
    }
    return it->second;
  };
  std::map<int32_t, int32_t> overwritten;  // by state: where
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      if (launch.kernel.params[p].access == Access::kIn) continue;
      const Binding& b = launch.bindings[p];
      if (b.state >= 0) overwritten[b.state] = static_cast<int32_t>(i);
    }
  }
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    LaunchGraph::Op op;
    op.seconds = launch.seconds;
    op.until = static_cast<int32_t>(plan.launches.size());
    std::set<int32_t> reads, writes;
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      const Binding& b = launch.bindings[p];
      if (b.state >= 0) {
        const auto at = overwritten.find(b.state);
        if (at == overwritten.end()) continue;
        op.until = std::min(op.until, at->second == static_cast<int32_t>(i) ? -1 : at->second);
      } else if (b.storage.kernel >= 0 && b.storage.value >= 0) {
        const int32_t v = value(b.storage);
        if (launch.kernel.params[p].access == Access::kIn) {
          reads.insert(v);
        } else {
          writes.insert(v);
          graph.values[v].maker = static_cast<int32_t>(i);
        }
      }
    }
    op.reads.assign(reads.begin(), reads.end());
    op.writes.assign(writes.begin(), writes.end());
    graph.ops.push_back(std::move(op));
  }
  LaunchGraph::Op end;
  std::set<int32_t> reads;
  for (const ChosenCopy& copy : plan.copies) {
    if (copy.from.kernel >= 0) reads.insert(value(copy.from));
  }
  for (const Storage& report : plan.reports) {
    if (report.kernel >= 0 && report.value >= 0) reads.insert(value(report));
  }
  end.reads.assign(reads.begin(), reads.end());
  graph.ops.push_back(std::move(end));
  graph.turn = FindTurn(graph);
  return graph;
}

StepPlan WithRepeats(const StepPlan& plan, const LaunchGraph& graph,
                     const std::vector<Storage>& storages, const Repeats& repeats) {
  StepPlan result;
  std::map<Storage, int32_t> latest;  // by storage as the plan has it: how often it was made again
  std::map<int32_t, int32_t> runs;
  for (const Storage& storage : storages) latest[storage] = 0;
  const auto current = [&](const Storage& storage) {
    Storage now = storage;
    if (const auto it = latest.find(storage); it != latest.end()) now.again = it->second;
    return now;
  };
  for (int32_t op : OrderOf(graph, repeats)) {
    if (op >= static_cast<int32_t>(plan.launches.size())) continue;  // the end
    Launch launch = plan.launches[op];
    const int32_t run = runs[op]++;
    for (size_t p = 0; p < launch.bindings.size(); ++p) {
      Binding& b = launch.bindings[p];
      if (b.state >= 0 || b.storage.kernel < 0) continue;
      if (launch.kernel.params[p].access != Access::kIn) latest[b.storage] = run;
    }
    for (Binding& b : launch.bindings) {
      if (b.state < 0) b.storage = current(b.storage);
    }
    result.launches.push_back(std::move(launch));
  }
  for (const ChosenCopy& copy : plan.copies) {
    result.copies.push_back({current(copy.from), copy.state});
  }
  for (const Storage& report : plan.reports) result.reports.push_back(current(report));
  result.seconds = plan.seconds + SecondsOf(graph, repeats);
  result.packing = plan.packing;
  return result;
}

bool IsMemoryDecision(std::string_view id) {
  return id.find(".kept@") != std::string_view::npos || id.ends_with("/arena.packing");
}

namespace {

constexpr const char* kSave = "save";
constexpr const char* kRecompute = "recompute";

class Planner {
 public:
  Planner(ArenaBound bound, const StepPlan& plan, const ValueTable& table, const RuleSources& rules,
          const ChooseOptions& options, std::string_view evidence, search::Explanation& explanation,
          RecomputeFailure& failure)
      : bound_(bound.bytes),
        memory_(bound.memory),
        plan_(plan),
        table_(table),
        rules_(rules),
        options_(options),
        evidence_(evidence),
        explanation_(explanation),
        failure_(failure),
        graph_(GraphOf(plan_, table, storages_, memory_)),
        search_(graph_, std::min(RepeatSearch::kWork, options.budget.work)) {}

  std::optional<StepPlan> Run() {
    std::vector<RuleSource> texts;
    for (const char* name : {"kernel_terms", "checkpointing"}) {
      if (const auto it = rules_.find(name); it != rules_.end()) texts.push_back(it->second);
    }
    texts.insert(texts.end(), options_.added.begin(), options_.added.end());
    egraph::Budget budget;
    // Few nodes for the kernels are no reason to have no plan; the user's rules may never end.
    budget.max_nodes = options_.budget.egraph_nodes;
    if (options_.added.empty()) {
      budget.max_nodes = std::max(budget.max_nodes, search::Budget().egraph_nodes);
    }
    budget.max_matches = options_.budget.work;
    terms_ = std::make_unique<KeptTerms>(graph_, texts, options_.numerics, budget);
    if (!terms_->error().empty()) {
      failure_.rule_error = terms_->error();
      return std::nullopt;
    }
    explanation_.report.work += terms_->report().matches;
    if (terms_->report().cut_short()) {
      search::Budget given = options_.budget;
      given.egraph_nodes = budget.max_nodes;
      failure_.timeout = search::CutShort(terms_->report(), given,
                                          "saturating what is saved and computed again", "");
      return std::nullopt;
    }
    Name();
    if (!Search()) return std::nullopt;
    if (!forced_.empty() && !Force()) return std::nullopt;
    if (options_.explain || !forced_.empty() || best_.seconds > 0) Explain();
    explanation_.report.work += search_.work();
    return WithRepeats(plan_, graph_, storages_, best_.repeats);
  }

 private:
  // A read that could be served by both, and is not of what has just been made or read.
  struct Named {
    std::string id;
    const KeptRead* read;
  };

  void Name() {
    std::vector<int32_t> touched(graph_.values.size(), -1);
    std::set<std::string> taken;
    size_t next = 0;
    for (int32_t op = 0; op < graph_.end(); ++op) {
      for (; next < terms_->reads().size() && terms_->reads()[next].segment == op; ++next) {
        const KeptRead& read = terms_->reads()[next];
        if (!read.save.valid() || !read.recompute.valid()) continue;
        if (touched[read.value] + 1 >= op) continue;
        const std::string reader = op < static_cast<int32_t>(plan_.launches.size())
                                       ? plan_.launches[op].id
                                       : std::string("end");
        const std::string base = options_.prefix + "/" +
                                 table_.values[storages_[read.value].value].name + ".kept@" +
                                 reader;
        std::string id = base;
        for (int n = 2; !taken.insert(id).second; ++n) id = base + "#" + std::to_string(n);
        named_.push_back({id, &read});
      }
      for (int32_t v : graph_.ops[op].reads) touched[v] = op;
      for (int32_t v : graph_.ops[op].writes) touched[v] = op;
    }
    for (const auto& [id, label] : options_.forced) {
      if (id.starts_with(options_.prefix + "/") && id.find(".kept@") != std::string::npos)
        forced_[id] = label;
    }
  }

  // The choice as its terms say it.
  RepeatChoice Settled(const RepeatChoice& choice) {
    RepeatChoice settled;
    settled.repeats = terms_->Read(terms_->Extract(choice.repeats));
    settled.seconds = SecondsOf(graph_, settled.repeats);
    LiveBytes live(graph_);
    settled.peak = live.Peak(settled.repeats);
    return settled;
  }

  int64_t ArenaOf(const RepeatChoice& choice) const {
    return PackArena(WithRepeats(plan_, graph_, storages_, choice.repeats), table_)
        .BytesIn(memory_);
  }

  // The cheapest choice found whose arena fits; `limit_` becomes the bytes that may live in it.
  std::optional<RepeatChoice> Fit(int64_t bound) {
    const RepeatOptions& options = terms_->options();
    // Slots do not always fit as tightly as their bytes would.
    limit_ = bound == kNoBound ? bound : (bound + kAlignment - 1) / kAlignment * kAlignment;
    for (int round = 0; round < kRounds; ++round) {
      const auto found = search_.Within(limit_, options);
      if (!found) break;
      RepeatChoice settled = Settled(*found);
      if (bound == kNoBound) return settled;
      const int64_t arena = ArenaOf(settled);
      if (arena <= bound) return settled;
      limit_ = std::min(limit_, settled.peak) - std::max(kAlignment, arena - bound);
    }
    if (!smallest_) smallest_ = Settled(search_.Smallest(options));
    limit_ = smallest_->peak;
    if (ArenaOf(*smallest_) <= bound) return smallest_;
    return std::nullopt;
  }

  bool Search() {
    if (auto found = Fit(bound_)) {
      best_ = *std::move(found);
      return true;
    }
    // The least bound, to a hundredth, at which something is found; the same whatever was asked
    // for.
    int64_t enough = ArenaOf(*smallest_);
    int64_t little = 0;
    while (enough - little > std::max(kAlignment, enough / 128)) {
      const int64_t middle = little + (enough - little) / 2;
      (Fit(middle) ? enough : little) = middle;
    }
    failure_.needed = enough;
    if (enough > bound_) return false;
    best_ = Fit(enough).value_or(*smallest_);
    return true;
  }

  RepeatOptions With(const std::vector<std::pair<const KeptRead*, bool>>& choices) const {
    RepeatOptions options = terms_->options();
    for (const auto& [read, recompute] : choices) {
      options[read->segment][graph_.values[read->value].maker] =
          recompute ? Repeat::kAlways : Repeat::kNever;
    }
    return options;
  }

  bool Force() {
    for (const auto& [id, label] : forced_) {
      const auto it = std::find_if(named_.begin(), named_.end(),
                                   [&id = id](const Named& n) { return n.id == id; });
      if (it == named_.end()) {
        std::vector<std::string> ids;
        for (const Named& n : named_) ids.push_back(n.id);
        const std::string close = support::ClosestMatch(id, ids);
        failure_.forced = "there is no decision '" + id + "' to force" +
                          (close.empty() ? "" : "; the closest is '" + close + "'");
        return false;
      }
      if (label != kSave && label != kRecompute) {
        failure_.forced =
            "'" + label + "' is no choice of '" + id + "': those are 'save', " + "'recompute'";
        return false;
      }
      choices_.emplace_back(it->read, label == kRecompute);
    }
    unforced_ = best_;
    const auto found = search_.Near(best_, limit_, With(choices_));
    if (!found) {
      failure_.forced = "the forced choices do not fit into " + support::PrintBytes(bound_);
      return false;
    }
    best_ = *found;
    if (bound_ != kNoBound && ArenaOf(best_) > bound_) {
      failure_.forced = "the forced choices do not fit into " + support::PrintBytes(bound_);
      return false;
    }
    return true;
  }

  search::CostVector Cost(const RepeatChoice& choice) const {
    return {{"time", plan_.seconds + choice.seconds, "s", std::string(evidence_)},
            {"memory", static_cast<double>(choice.peak), "B", "exact"}};
  }

  void Explain() {
    const RepeatChoice start = best_;
    for (const Named& n : named_) {
      const std::vector<int32_t>& ops = best_.repeats[n.read->segment];
      const bool again =
          std::binary_search(ops.begin(), ops.end(), graph_.values[n.read->value].maker);
      search::Decision decision;
      decision.id = n.id;
      decision.chosen = again ? kRecompute : kSave;
      decision.cost = Cost(best_);
      decision.forced = forced_.contains(n.id);
      const egraph::Rule& rule = terms_->RuleOf(again ? n.read->recompute : n.read->save);
      decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
      if (!options_.explain) {
        explanation_.decisions.push_back(std::move(decision));
        continue;
      }
      auto choices = choices_;
      std::erase_if(choices, [&](const auto& choice) { return choice.first == n.read; });
      choices.emplace_back(n.read, !again);
      const char* label = again ? kSave : kRecompute;
      const auto other = search_.Near(unforced_.value_or(start), limit_, With(choices));
      if (other && (bound_ == kNoBound || ArenaOf(*other) <= bound_)) {
        ++explanation_.report.scored;
        search::Loser loser;
        loser.label = label;
        loser.cost = Cost(*other);
        loser.difference = search::Difference(loser.cost, decision.cost);
        loser.decided_by = loser.difference[0].value != 0 ? "time" : "memory";
        decision.losers.push_back(std::move(loser));
      } else {
        decision.pruned.push_back(
            {label, "nothing was found that fits into " + support::PrintBytes(bound_) + " with it",
             0});
      }
      explanation_.decisions.push_back(std::move(decision));
    }
  }

  static constexpr int kRounds = 8;

  const int64_t bound_;
  const std::optional<uint32_t> memory_;
  const StepPlan plan_;
  const ValueTable& table_;
  const RuleSources& rules_;
  const ChooseOptions& options_;
  const std::string_view evidence_;
  search::Explanation& explanation_;
  RecomputeFailure& failure_;
  std::vector<Storage> storages_;  // by value of the graph; made with it
  const LaunchGraph graph_;
  RepeatSearch search_;
  std::unique_ptr<KeptTerms> terms_;
  std::vector<Named> named_;
  std::map<std::string, std::string> forced_;
  std::vector<std::pair<const KeptRead*, bool>> choices_;  // forced: recompute or not
  std::optional<RepeatChoice> smallest_;
  RepeatChoice best_;
  std::optional<RepeatChoice> unforced_;  // before anything was forced
  int64_t limit_ = 0;                     // on the bytes that live, so that the slots fit
};

}  // namespace

std::optional<StepPlan> PlanWithin(ArenaBound bound, const StepPlan& plan, const ValueTable& table,
                                   const RuleSources& rules, const ChooseOptions& options,
                                   std::string_view evidence, search::Explanation& explanation,
                                   RecomputeFailure& failure) {
  return Planner(bound, plan, table, rules, options, evidence, explanation, failure).Run();
}

}  // namespace l3c::l0::lower
