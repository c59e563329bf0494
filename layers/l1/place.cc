// Rules in rewrites/placement.egg. What is computed here are the facts that they start from and the
// choice among what they find; the figures are those of place_model.h.
#include "layers/l1/place.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "egraph/egraph.h"
#include "egraph/extract/pareto.h"
#include "egraph/program.h"
#include "egraph/view.h"
#include "layers/l1/place_cuts.h"
#include "layers/l1/place_facts.h"
#include "layers/l1/place_failure.h"
#include "layers/l1/place_model.h"
#include "layers/l1/place_terms.h"
#include "layers/search/rule_trace.h"
#include "layers/search/saturation.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l1 {
namespace {

// Placements on a few nodes are looked at whatever the budget of the kernels' search is.
constexpr uint64_t kLeastNodes = 4096;

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;
using egraph::ParetoCost;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The operations of a step, in the order of their decisions.
constexpr std::array<const char*, 3> kOperations = {"load", "forward_backward", "model_state"};

// A placement of the graph for so many steps in flight.
struct Plan {
  std::array<double, kPlacementComponents> cost{};
  std::map<std::string, std::string> label;  // by decision; kStagesId only where a batch is carried
  std::string home;                          // where the state is used
  std::string rests;                         // and lies, where that is another memory
  int64_t depth = 1;
  double time = 0;
  std::vector<ENodeRef> nodes;

  // Stages run beside one another as far as there are steps in flight: with d of them, a step takes
  // as long as the slowest stage, and no less than a d-th of all of them.
  void SetTime() {
    const double sum = cost[kLoad] + cost[kCarry] + cost[kCompute];
    const double slowest = std::max({cost[kLoad], cost[kCarry], cost[kCompute]});
    time = depth == 1 ? sum : std::max(slowest, sum / static_cast<double>(depth));
  }
  bool Better(const Plan& other) const {
    return std::tie(time, cost[kBytes]) < std::tie(other.time, other.cost[kBytes]);
  }
};

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

class Placer {
 public:
  Placer(const System& system, const StepDemand& demand, const std::vector<std::string>& isas,
         int64_t max_depth, const search::LoweringOptions& options)
      : system_(system),
        demand_(demand),
        options_(options),
        model_(system, demand),
        facts_(FactsOf(system, demand, model_, isas, max_depth, options)) {}

  PlacementResult Run() {
    result_.explanation.lowering = "l2->l1";
    result_.explanation.pruned = facts_->pruned;
    if (facts_->failure) result_.failure = *facts_->failure;
    if (result_.failure || !Saturate()) return std::move(result_);
    const EGraphView view(graph_);
    view_ = &view;
    root_ = view.ClassOf(*graph_.Lookup(graph_.FindFunction("Step"), {}));
    const PlacementTerms terms(system_, demand_, model_, *facts_, graph_, view);
    terms_ = &terms;
    Choose();
    return std::move(result_);
  }

 private:
  bool Fail(std::string reason, std::string hint) {
    // The system is a text of its own: its places are none of the method's.
    result_.failure = search::NoCandidates{std::move(reason), std::move(hint), {}};
    return false;
  }
  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }
  uint32_t NodeNamed(const std::string& name) const { return *FindNode(system_, name); }

  bool Saturate() {
    const rewrites::RuleFile* rules = rewrites::Find("placement");
    if (rules == nullptr) {
      return Fail("there are no rules for placement", "restore rewrites/placement.egg");
    }
    // Without these there is no placement of anything.
    for (const char* name :
         {"resident-state", "stay", "transfer", "at-rest", "run-one-operand", "run-two-operands"}) {
      if (rules->text.find(":name \"" + std::string(name) + "\"") != std::string::npos) continue;
      without_ += (without_.empty() ? "'" : ", '") + std::string(name) + "'";
    }
    egraph::ProgramOptions limits;
    limits.budget.max_nodes = std::max(options_.budget.egraph_nodes, kLeastNodes);
    limits.budget.max_matches = options_.budget.work;
    auto loaded = egraph::LoadProgram(graph_, rules->text, rules->path, limits);
    first_added_ = static_cast<uint32_t>(graph_.rule_count());
    if (const std::string wrong = search::LoadAddedRules(graph_, options_.rules, "l2->l1");
        !wrong.empty()) {
      return Fail(wrong, "correct the rules of --rules");
    }
    if (loaded.ok()) loaded = egraph::LoadProgram(graph_, facts_->text, "the system", limits);
    if (loaded.ok()) {
      loaded = egraph::LoadProgram(graph_, "(run-schedule (saturate (run placement)))",
                                   "the system", limits);
    }
    if (!loaded.ok()) {
      return Fail("the rules for placement do not load: " + loaded.status.ToString(),
                  "correct rewrites/placement.egg");
    }
    const egraph::RunReport& run = loaded.reports.back();
    search::SearchReport& report = result_.explanation.report;
    report.work = run.matches;
    left_ = options_.budget.work - std::min(options_.budget.work, run.matches);
    report.work_budget = options_.budget.work;
    report.egraph_nodes = graph_.NodeCount();
    report.egraph_classes = graph_.ClassCount();
    report.stop_reason = std::string(egraph::StopReasonName(run.stop));
    if (run.cut_short()) {
      result_.failure = search::CutShort(run, options_.budget, "saturating", "");
      return false;
    }
    if (graph_.Lookup(graph_.FindFunction("Step"), {})) return true;
    TellWhyNone({});
    return false;
  }

  std::string Text(egraph::Value value) const { return graph_.AsString(value); }

  // ---- Choice -------------------------------------------------------------------------------

  // The placements under `held`, of which the depth is a part, that none beats in all components.
  std::vector<Plan> Front(const HeldChoices& held, int64_t depth) {
    if (out_of_work_) return {};
    egraph::ParetoOptions options;
    options.components = kPlacementComponents;
    options.max_work = left_;
    options.node_cost = [&](const EGraphView&, ENodeRef n) { return terms_->CostOf(n, held); };
    const egraph::ParetoResult result = egraph::ParetoExtract(*view_, root_, options);
    // Out of work, an extraction goes on to the end with what comes first.
    const uint64_t spent = std::min(left_, result.considered);
    if (!telling_) result_.explanation.report.work += spent;
    left_ -= spent;
    out_of_work_ = result.work_exhausted;
    std::vector<Plan> front;
    if (out_of_work_) return front;
    for (const egraph::ParetoTerm& term : result.terms) {
      Plan plan;
      std::copy_n(term.cost.begin(), static_cast<size_t>(kPlacementComponents), plan.cost.begin());
      plan.depth = depth;
      plan.SetTime();
      plan.nodes = term.nodes;
      for (ENodeRef n : term.nodes) {
        for (const auto& [decision, label] : terms_->LabelsOf(n)) {
          if (!label.empty()) plan.label[decision] = label;
        }
        const std::string& function = view_->function(n).name;
        if (function == "StepAt") plan.home = Text(view_->NodeArgs(n)[0]);
        if (function == "StepFrom") {
          plan.rests = Text(view_->NodeArgs(n)[0]);
          plan.home = Text(view_->NodeArgs(n)[1]);
        }
      }
      front.push_back(std::move(plan));
    }
    return front;
  }

  // The best plan under `held`; the fewest steps in flight where several are as good.
  std::optional<Plan> Best(const HeldChoices& held) {
    std::optional<Plan> best;
    for (int64_t d = 1; d <= facts_->max_depth; ++d) {
      const auto depth = held.find(kDepthId);
      if (depth != held.end() && depth->second != std::to_string(d)) continue;
      HeldChoices at = held;
      at[kDepthId] = std::to_string(d);
      for (Plan& plan : Front(at, d)) {
        ++result_.explanation.report.scored;
        if (!best || plan.Better(*best)) best = std::move(plan);
      }
    }
    return best;
  }

  search::CostVector CostOf(const Plan& plan) const {
    return {{"step_time", plan.time, "s", "analytical"},
            {"bytes", demand_.state_bytes + plan.cost[kBytes], "B", "analytical"}};
  }

  // The decisions, in the order in which they are told and, node by node, made.
  static std::vector<std::string> Decisions() {
    return {NodeDecision("load"),
            kStagingId,
            NodeDecision("forward_backward"),
            kPartitionId,
            kCutId,
            kMicroId,
            kGradientsId,
            NodeDecision("model_state"),
            kStateId,
            kStagesId,
            kDepthId};
  }

  // What `--force` and the mode of the search hold the plan to; nothing after a failure.
  std::optional<HeldChoices> Holds() {
    HeldChoices held;
    for (const std::string& id : Decisions()) {
      const auto forced = options_.forced.find(id);
      if (forced == options_.forced.end()) continue;
      const std::vector<std::string>& choices = facts_->choices[id];
      if (std::find(choices.begin(), choices.end(), forced->second) == choices.end()) {
        Fail("'" + forced->second + "' is no choice for " + id +
                 WhyNoChoice(demand_, *facts_, id, forced->second),
             "the choices are " + Listed(choices));
        return std::nullopt;
      }
      held[id] = forced->second;
    }
    if (options_.mode == search::Mode::kEGraph) return held;

    // Decision by decision: the first that leaves a plan, or the fastest for its operation alone.
    const bool greedy = options_.mode == search::Mode::kGreedy;
    for (const char* op : kOperations) {
      const std::string id = NodeDecision(op);
      if (held.contains(id)) continue;
      std::vector<std::string> order = facts_->choices[id];
      if (greedy) {
        std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
          return AloneTime(op, a) < AloneTime(op, b);
        });
      }
      for (const std::string& label : order) {
        held[id] = label;
        if (Best(held)) break;
        held.erase(id);
      }
    }
    if (!greedy) held.try_emplace(kDepthId, "1");
    return held;
  }

  double AloneTime(const std::string& op, const std::string& label) const {
    const Site& site = *std::find_if(facts_->sites.begin(), facts_->sites.end(),
                                     [&](const Site& s) { return s.name == label; });
    if (op == "load") return model_.LoadTime(site.nodes[0], site.memories[0]);
    if (op == "model_state") return model_.ReplicatedUpdateTime(site);
    if (!site.in_stages) return model_.ModelTime(site);
    double best = kNever;
    for (const std::vector<size_t>& cut : site.cuts) {
      for (int64_t parts : demand_.micro_batches) {
        best = std::min(best, model_.StagesTime(site, cut, parts));
      }
    }
    return best;
  }

  void Choose() {
    const auto held = Holds();
    if (!held) return;
    std::optional<Plan> best = Best(*held);
    if (best) PreferFirst(*held, *best);
    if (out_of_work_) {
      const search::SearchReport& report = result_.explanation.report;
      result_.failure =
          search::OutOf("work", report.work, report.work_budget, "comparing placements", "");
      return;
    }
    if (!best) return TellWhyNone(*held);
    result_.explanation.report.candidates = egraph::CountTerms(*view_, root_);

    telling_ = true;
    for (const std::string& id : Decisions()) {
      // Where there is one way alone nothing is decided, but for the nodes and the depth.
      const bool always = id.starts_with("l1/node.") || id == kDepthId ||
                          (id == kPartitionId && !facts_->out_of_order.empty());
      if (!best->label.contains(id) || (!always && facts_->choices[id].size() < 2)) continue;
      Explain(id, *best, *held);
    }
    search::TraceRules(graph_, first_added_, result_.explanation);

    const auto one = [&](const char* op) { return NodeNamed(best->label.at(NodeDecision(op))); };
    Placement place;
    place.storage = facts_->storage;
    place.loader = one("load");
    place.staging = NodeNamed(best->label.at(kStagingId));
    const auto home = FindNode(system_, best->home);
    place.replicated = !home;
    if (home) place.update = one("model_state");
    if (home) place.home = *home;
    if (!best->rests.empty()) place.rests = NodeNamed(best->rests);
    for (ENodeRef n : best->nodes) {
      const Site* site = terms_->SiteOf(n);
      if (site == nullptr || Text(view_->NodeArgs(n)[0]) != "forward_backward") continue;
      place.model = site->nodes;
      place.resident = site->memories;
      if (place.replicated) place.update = site->nodes[0];
      if (place.replicated) place.home = site->memories[0];
      if (!site->in_stages) continue;
      place.micro_batches = std::stoll(best->label.at(kMicroId));
      for (const std::vector<size_t>& cut : site->cuts) {
        if (CutLabel(cut) != best->label.at(kCutId)) continue;
        for (size_t s = 0; s < cut.size(); ++s) {
          place.stage_of.insert(place.stage_of.end(), cut[s], s);
        }
      }
    }
    const auto stages = best->label.find(kStagesId);
    place.own_transfer = stages != best->label.end() && stages->second == "split";
    place.pipeline_depth = best->depth;
    result_.placement = std::move(place);
  }

  void TellWhyNone(const HeldChoices& held) {
    if (!without_.empty()) {
      Fail("without the rules " + without_ + " of placement.egg nothing can be placed",
           "leave them in: drop --without");
      return;
    }
    PlacementCause cause = WhyNoPlacement(system_, demand_, model_, *facts_, held);
    Fail(std::move(cause.reason), std::move(cause.hint));
  }

  // Of plans that are as good, that with the first label in each decision, in their order.
  void PreferFirst(HeldChoices held, Plan& best) {
    for (const std::string& id : Decisions()) {
      const auto chosen = best.label.find(id);
      if (chosen == best.label.end() || held.contains(id)) continue;
      for (const std::string& label : facts_->choices[id]) {
        if (label == chosen->second) break;
        held[id] = label;
        const auto plan = Best(held);
        if (!plan || best.Better(*plan)) continue;
        best = *plan;
        break;
      }
      held[id] = best.label.at(id);
    }
  }

  void AddLoser(search::Decision& decision, const Plan& winner, std::string label,
                const Plan& plan) {
    search::Loser loser;
    loser.label = std::move(label);
    loser.cost = CostOf(plan);
    loser.difference = search::Difference(loser.cost, decision.cost);
    const double load =
        plan.cost[kLoad] + plan.cost[kCarry] - winner.cost[kLoad] - winner.cost[kCarry];
    const double compute = plan.cost[kCompute] - winner.cost[kCompute];
    loser.decided_by = plan.time == winner.time    ? "bytes"
                       : load <= 0 && compute <= 0 ? "step_time (no overlap of load and compute)"
                       : load > compute            ? "step_time (loading)"
                                                   : "step_time (computing)";
    decision.losers.push_back(std::move(loser));
  }

  void Explain(const std::string& id, const Plan& best, const HeldChoices& held) {
    search::Decision decision;
    decision.id = id;
    decision.chosen = best.label.at(id);
    decision.cost = CostOf(best);
    decision.forced = options_.forced.contains(id);
    std::vector<std::string> excluded;
    for (const std::string& label : facts_->choices[id]) {
      if (label == decision.chosen) continue;
      // A cut stands beside those into as many stages.
      const auto bars = [](const std::string& cut) {
        return std::count(cut.begin(), cut.end(), '|');
      };
      if (id == kCutId && bars(label) != bars(decision.chosen)) continue;
      HeldChoices other = held;
      other[id] = label;
      // Who loses, and by how much, is told beside the search.
      left_ = options_.budget.work;
      out_of_work_ = false;
      if (const auto plan = Best(other)) {
        AddLoser(decision, best, label, *plan);
      } else if (out_of_work_) {
        decision.pruned.push_back({What(id) + label, "not compared: the budget of work ended", 1});
      } else if (std::string why = WhyNoPlanWith(system_, model_, *facts_, id, label);
                 !why.empty()) {
        decision.pruned.push_back({What(id) + label, std::move(why), 1});
      } else {
        excluded.push_back(label);
      }
    }
    if (id == kPartitionId) {
      for (const std::string& label : facts_->out_of_order) {
        decision.pruned.push_back({label, kWhyOutOfOrder, 1});
      }
    }
    if (!excluded.empty()) {
      decision.pruned.push_back({excluded.size() == 1 ? What(id) + excluded[0] : "others",
                                 "no plan is left: no path of edges, or what else is asked for "
                                 "excludes it",
                                 excluded.size()});
    }
    std::stable_sort(decision.losers.begin(), decision.losers.end(),
                     [](const search::Loser& a, const search::Loser& b) {
                       return a.cost[0].value < b.cost[0].value;
                     });
    if (id.starts_with("l1/node.")) CiteRules(id.substr(8), best.nodes, decision);
    result_.explanation.decisions.push_back(std::move(decision));
  }

  static std::string What(const std::string& id) {
    if (id == kDepthId) return "depth ";
    if (id == kStagingId) return "staging in ";
    if (id == kStateId) return "state ";
    return id.starts_with("l1/node.") ? "node " : "";
  }

  // The rules behind an operation's e-node and behind how its first operand gets there: what stands
  // in the term between it and the next operation.
  void CiteRules(const std::string& op, const std::vector<ENodeRef>& term,
                 search::Decision& decision) const {
    bool inside = false;
    std::set<std::string> cited;
    for (ENodeRef n : term) {
      if (terms_->SiteOf(n) != nullptr) inside = Text(view_->NodeArgs(n)[0]) == op;
      const egraph::RuleId id = view_->NodeRule(n);
      if (!inside || id == egraph::kInitial || id == egraph::kCongruence) continue;
      const egraph::Rule& rule = graph_.rule(id);
      if (!cited.insert(rule.name).second) continue;
      decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
    }
  }

  const System& system_;
  const StepDemand& demand_;
  const search::LoweringOptions& options_;
  const PlacementModel model_;
  PlacementResult result_;
  std::unique_ptr<PlacementFacts> facts_;
  egraph::EGraph graph_;
  uint32_t first_added_ = 0;  // rule of the user's
  std::string without_;       // built-in rules that are left out
  uint64_t left_ = 0;         // of the budget of work
  bool out_of_work_ = false;
  bool telling_ = false;  // who lost, which is beside the search and its budget
  const EGraphView* view_ = nullptr;
  const PlacementTerms* terms_ = nullptr;
  ClassRef root_;
};

}  // namespace

PlacementResult Place(const System& system, const StepDemand& demand,
                      const std::vector<std::string>& isas, int64_t max_depth,
                      const search::LoweringOptions& options) {
  PlacementResult result = Placer(system, demand, isas, max_depth, options).Run();
  auto* timeout = result.failure ? std::get_if<search::Timeout>(&*result.failure) : nullptr;
  const uint64_t usual = search::Budget().work;
  if (timeout == nullptr || timeout->resource != "work" || options.budget.work >= usual) {
    return result;
  }
  // How much is enough is found by doing it.
  search::LoweringOptions more = options;
  more.budget.work = usual;
  const PlacementResult whole = Placer(system, demand, isas, max_depth, more).Run();
  if (whole.placement) {
    timeout->hint += ": placement takes " + std::to_string(whole.explanation.report.work);
  }
  return result;
}

}  // namespace l3c::l1
