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
#include "layers/l1/place_model.h"
#include "layers/search/rule_trace.h"
#include "layers/search/saturation.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l1 {
namespace {

// Placements on a few nodes are looked at whatever the budget of the kernels' search is.
constexpr uint64_t kLeastNodes = 4096;

constexpr size_t kMostNodes = 8;
constexpr size_t kLeastHosts = 2;

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;
using egraph::ParetoCost;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The operations of a step, in the order of their decisions.
constexpr std::array<const char*, 3> kOperations = {"load", "forward_backward", "model_state"};
constexpr char kPartitionId[] = "l1/partition";
constexpr char kCutId[] = "l1/cut";
constexpr char kMicroId[] = "l1/micro_batches";
constexpr char kStagingId[] = "l1/staging";
constexpr char kStagesId[] = "l1/stages";
constexpr char kDepthId[] = "l1/pipeline_depth";
std::string NodeDecision(const std::string& op) { return "l1/node." + op; }

// Components of the cost: what the loading stage takes, what a stage that carries batches takes,
// what the rest does; and the bytes that lie somewhere for it, which decide between equal times.
enum Component : size_t { kLoad, kCarry, kCompute, kBytes, kComponents };

// What a plan is held to: decision → label.
using Held = std::map<std::string, std::string>;

// A placement of the graph for so many steps in flight.
struct Plan {
  std::array<double, kComponents> cost{};
  std::map<std::string, std::string> label;  // by decision; kStagesId only where a batch is carried
  std::string home;                          // where the state lies
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

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }
std::string BatchTerm(int64_t depth, const std::string& staging) {
  return "(Op1 \"load\" (Ahead " + std::to_string(depth) + " " + Quoted(staging) + " (Data)))";
}
std::string GradientTerm(const std::string& batch, const std::string& home) {
  return "(Op2 \"forward_backward\" " + batch + " (Params " + Quoted(home) + "))";
}
std::string NextTerm(const std::string& gradients, const std::string& home) {
  return "(Op2 \"model_state\" " + gradients + " (State " + Quoted(home) + "))";
}

std::string PartitionOf(const Site& site) {
  if (site.parts() == 1) return "whole";
  return (site.in_stages ? "stages(" : "data(") + std::to_string(site.parts()) + ")";
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void AddOnce(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

class Placer {
 public:
  Placer(const System& system, const StepDemand& demand, const std::vector<std::string>& isas,
         int64_t max_depth, const search::LoweringOptions& options)
      : system_(system),
        demand_(demand),
        isas_(isas),
        max_depth_(max_depth),
        options_(options),
        model_(system, demand) {}

  PlacementResult Run() {
    result_.explanation.lowering = "l2->l1";
    if (!StateFacts() || !Saturate()) return std::move(result_);
    const EGraphView view(graph_);
    view_ = &view;
    root_ = view.ClassOf(*graph_.Lookup(graph_.FindFunction("Step"), {}));
    ReadNodes();
    Choose();
    return std::move(result_);
  }

 private:
  bool Fail(std::string reason, std::string hint) {
    // The system is a text of its own: its places are none of the method's.
    result_.failure = search::NoCandidates{std::move(reason), std::move(hint), {}};
    return false;
  }
  void Prune(std::string what, std::string why) {
    result_.explanation.pruned.push_back({std::move(what), std::move(why), 1});
  }
  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }
  uint32_t NodeNamed(const std::string& name) const { return *FindNode(system_, name); }

  bool MayUse(const SystemNode& node) const {
    return isas_.empty() || std::find(isas_.begin(), isas_.end(), node.isa) != isas_.end();
  }

  // ---- Facts --------------------------------------------------------------------------------

  bool StateFacts() {
    std::optional<uint32_t> storage;
    std::vector<uint32_t> computing;
    for (uint32_t n = 0; n < system_.nodes.size(); ++n) {
      const SystemNode& node = system_.nodes[n];
      if (node.kind == NodeKind::kStorage && !storage) storage = n;
      if (node.kind != NodeKind::kCompute) continue;
      if (LocalMemories(system_, n).empty()) {
        Prune("node " + node.name, "it has no edge to a memory node and no vram");
      } else if (!MayUse(node)) {
        Prune("node " + node.name, "there is no backend for isa " + node.isa);
      } else {
        computing.push_back(n);
      }
    }
    if (!storage) return Fail("the system has no storage node for the data", "add one");
    if (computing.empty()) {
      return Fail("no compute node of the system can be used",
                  "add a node with isa: " + (isas_.empty() ? "x86_64" : isas_.front()) +
                      " and an edge to a memory node");
    }
    KeepFastest(computing);
    storage_ = *storage;
    facts_ = "(set (Name (Data)) \"data\")\n(AtRest (Data) " + Quoted(Name(storage_)) + ")\n";

    nodes_that_compute_ = static_cast<int64_t>(std::min(computing.size(), kMaxSharing));
    sites_ = SitesOf(system_, demand_, computing, max_depth_);
    if (options_.keep_order && std::erase_if(sites_, [](const Site& s) { return s.parts() > 1; })) {
      Prune("batches that nodes share", "gradients would add up in another order (numerics exact)");
    }
    std::set<std::string> computed;  // sites, by label
    for (const Site& site : sites_) {
      Fact("Local", {site.label, site.place});
      if (!computed.insert(site.label).second) continue;
      if (site.in_stages) {
        Fact("InStages", {"forward_backward", site.label});
        choices_[NodeDecision("forward_backward")].push_back(site.label);
        StateCuts(site);
      } else {
        Able("forward_backward", site.label);
      }
      AddOnce(choices_[kPartitionId], PartitionOf(site));
      if (site.parts() > 1) continue;
      Able("model_state", site.label);
      // Files are read by the host's own processors.
      if (system_.nodes[site.nodes[0]].vram == 0) Able("load", site.label);
    }
    for (int64_t n : demand_.micro_batches) {
      facts_ += "(Micro " + std::to_string(n) + ")\n";
      choices_[kMicroId].push_back(std::to_string(n));
    }
    choices_[kStagesId] = {"split", "fused"};
    // More steps in flight than stages are of no use: without a batch that is carried there are
    // two.
    const bool carried = std::any_of(sites_.begin(), sites_.end(), [&](const Site& site) {
      return site.place != sites_.front().place;
    });
    if (!carried) max_depth_ = std::min<int64_t>(max_depth_, 2);
    for (int64_t d = 1; d <= max_depth_; ++d) choices_[kDepthId].push_back(std::to_string(d));
    return StateHomes() && StateRoom() && StateLinks();
  }

  // What there is to choose from grows with the third power of the nodes: of many the fastest are
  // looked at, and the fastest hosts, since those read the data.
  void KeepFastest(std::vector<uint32_t>& computing) {
    if (computing.size() <= kMostNodes) return;
    std::vector<uint32_t> fastest = computing;
    std::stable_sort(fastest.begin(), fastest.end(), [&](uint32_t a, uint32_t b) {
      return AssumedFlops(system_.nodes[a]) > AssumedFlops(system_.nodes[b]);
    });
    size_t kept = 0, hosts = 0;
    std::set<uint32_t> keep;
    for (uint32_t node : fastest) {
      const bool host = system_.nodes[node].vram == 0;
      if (kept < kMostNodes || (host && hosts < kLeastHosts)) {
        keep.insert(node);
        ++kept;
        hosts += host ? 1 : 0;
      } else {
        Prune("node " + Name(node), "not looked at: of more than " + std::to_string(kMostNodes) +
                                        " compute nodes only the fastest are");
      }
    }
    std::erase_if(computing, [&](uint32_t node) { return !keep.contains(node); });
  }

  // From as many layers for each stage to all cuts that fit, by moving one over one boundary.
  void StateCuts(const Site& site) {
    const size_t stages = site.parts(), layers = demand_.layers.size();
    std::vector<size_t> even(stages, layers / stages);
    for (size_t s = 0; s < layers % stages; ++s) ++even[s];
    Fact("Even", {site.label, CutLabel(even)});
    for (const std::vector<size_t>& cut : site.cuts) {
      Fact("StageFits", {site.label, CutLabel(cut)});
      AddOnce(choices_[kCutId], CutLabel(cut));
    }
    if (!shifted_.insert(stages).second) return;
    std::set<std::vector<size_t>> seen = {even};
    std::vector<std::vector<size_t>> left = {even};
    while (!left.empty()) {
      const std::vector<size_t> cut = std::move(left.back());
      left.pop_back();
      for (size_t s = 0; s + 1 < stages; ++s) {
        for (const bool forwards : {false, true}) {
          std::vector<size_t> moved = cut;
          if (--moved[forwards ? s : s + 1] == 0) continue;
          ++moved[forwards ? s + 1 : s];
          Fact("Shift", {CutLabel(cut), CutLabel(moved)});
          if (seen.insert(moved).second) left.push_back(moved);
        }
      }
    }
  }

  bool StateHomes() {
    std::set<uint32_t> seen;
    for (const Site& site : sites_) {
      if (site.parts() > 1 || !seen.insert(site.memories[0]).second) continue;
      const uint32_t memory = site.memories[0];
      if (model_.StateFits(memory)) {
        Fact("StateFits", {Name(memory)});
        homes_.push_back(memory);
      } else {
        Prune("state in " + Name(memory),
              "state larger than " + Name(memory) + "'s memory: it needs " +
                  support::PrintBytes(static_cast<int64_t>(demand_.state_bytes)));
      }
      if (system_.nodes[memory].kind == NodeKind::kMemory) {
        stagings_.push_back(memory);
        choices_[kStagingId].push_back(Name(memory));
      }
    }
    if (homes_.empty()) {
      return Fail("parameters and optimiser state need " +
                      support::PrintBytes(static_cast<int64_t>(demand_.state_bytes)) +
                      ", more than any memory of the system has",
                  "use a smaller model, or an update with less state");
    }
    for (int64_t parts = 2; parts <= nodes_that_compute_; ++parts) {
      if (demand_.CanShare(parts)) continue;
      const auto why = demand_.why_not_shared.find(parts);
      if (!demand_.why_beside_state.empty()) {
        Prune("a batch shared by " + std::to_string(parts) + " nodes", demand_.why_beside_state);
      } else if (why != demand_.why_not_shared.end()) {
        Prune("a batch shared by " + std::to_string(parts) + " nodes", why->second);
      }
    }
    return true;
  }

  // What may be made where: the values of a step with so many in flight, staged in a memory.
  bool StateRoom() {
    for (int64_t d = 1; d <= max_depth_; ++d) {
      for (uint32_t staging : stagings_) {
        facts_ += "(Flight " + std::to_string(d) + " " + Quoted(Name(staging)) + ")\n";
        const std::string batch = BatchTerm(d, Name(staging));
        facts_ += "(Room " + batch + " " + Quoted(Name(staging)) + ")\n";
        for (uint32_t home : homes_) {
          const std::string gradients = GradientTerm(batch, Name(home));
          facts_ += "(Room " + NextTerm(gradients, Name(home)) + " " + Quoted(Name(home)) + ")\n";
          std::set<std::string> places;
          for (const Site& site : sites_) {
            if (!places.insert(site.place).second) continue;
            const bool beside = site.parts() == 1 && site.memories[0] == home;
            if (!beside && !demand_.why_beside_state.empty()) {
              why_not_.try_emplace(site.label, demand_.why_beside_state);
              continue;
            }
            const PlacementModel::Need need = model_.NeedOf(d, staging, home, site);
            if (!need.too_small.empty()) {
              for (const Site& other : sites_) {
                if (other.place == site.place) why_not_.try_emplace(other.label, need.too_small);
              }
              why_not_depth_.try_emplace(d, need.too_small);
              continue;
            }
            facts_ +=
                (need.tight ? "(Tight " : "(Room ") + gradients + " " + Quoted(site.place) + ")\n";
          }
        }
      }
    }
    return true;
  }

  bool StateLinks() {
    std::set<std::pair<std::string, std::string>> known;
    const auto link = [&](const std::string& from, const std::string& to, double time) {
      if (from == to || time == kNever || !known.insert({from, to}).second) return;
      Fact("Link", {from, to});
    };
    for (uint32_t staging : stagings_) {
      link(Name(storage_), Name(staging), model_.ReadTime(storage_, staging));
    }
    for (const Site& site : sites_) {
      site_at_.try_emplace(site.place, &site);
      for (uint32_t staging : stagings_) {
        const double time = model_.BatchTime(staging, site);
        link(Name(staging), site.place, time);
        // A batch that is cut up is handed out by a stage behind the one that cuts it.
        if (site.parts() == 1 && Name(staging) != site.place && time != kNever) {
          adjacent_.insert({Name(staging), site.place});
        }
      }
      for (uint32_t home : homes_) {
        link(Name(home), site.place, model_.ParameterTime(home, site));
        link(site.place, Name(home), model_.GradientTime(site, home));
      }
    }
    for (const auto& [from, to] : adjacent_) Fact("Adjacent", {from, to});
    return true;
  }

  void Able(const std::string& op, const std::string& label) {
    Fact("CanRun", {op, label});
    choices_[NodeDecision(op)].push_back(label);
  }

  void Fact(const std::string& relation, const std::vector<std::string>& args) {
    facts_ += "(" + relation;
    for (const std::string& arg : args) facts_ += " " + Quoted(arg);
    facts_ += ")\n";
  }

  bool Saturate() {
    const rewrites::RuleFile* rules = rewrites::Find("placement");
    if (rules == nullptr) {
      return Fail("there are no rules for placement", "restore rewrites/placement.egg");
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
    if (loaded.ok()) loaded = egraph::LoadProgram(graph_, facts_, "the system", limits);
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
    if (!graph_.Lookup(graph_.FindFunction("Step"), {})) {
      return Fail("no rule gives a step a place", "restore rewrites/placement.egg");
    }
    return true;
  }

  // ---- Costs --------------------------------------------------------------------------------

  std::string Text(egraph::Value value) const { return graph_.AsString(value); }

  // The site that a node's or a set of nodes' name stands for, in a place.
  const Site& SiteOf(const std::string& label, const std::string& place) const {
    return *std::find_if(sites_.begin(), sites_.end(), [&](const Site& site) {
      return site.label == label && site.place == place;
    });
  }

  ParetoCost MoveCost(const std::string& what, const std::string& from, const std::string& to,
                      bool along) const {
    ParetoCost cost{};
    // Batches and parameters come from one memory, gradients go to one.
    const bool back = what == "gradients";
    const auto memory = FindNode(system_, back ? to : from);
    const auto site = site_at_.find(back ? from : to);
    if (!memory || site == site_at_.end()) {
      cost[kBytes] = kNever;
      return cost;
    }
    const double parts = static_cast<double>(site->second->parts());
    if (what == "data") {
      cost[kLoad] = model_.ReadTime(*memory, site->second->memories[0]);
    } else if (what == "batch") {
      const double time = model_.BatchTime(*memory, *site->second);
      cost[along ? kLoad : kCarry] = time + (along ? 0 : kHandOver);
      cost[kBytes] = demand_.batch_bytes;
    } else if (back) {
      cost[kCompute] = model_.GradientTime(*site->second, *memory);
      cost[kBytes] = parts * demand_.gradient_bytes;
    } else {
      cost[kCompute] = model_.ParameterTime(*memory, *site->second);
      cost[kBytes] = parts * demand_.parameter_bytes;
    }
    return cost;
  }

  // What an e-node costs by itself, and the labels that it stands for.
  struct NodeFacts {
    ParetoCost cost{};
    // Decision, label; "" where the decision is none with it.
    std::vector<std::pair<std::string, std::string>> labels;
    const Site* site = nullptr;  // of an operation
  };

  void ReadNodes() {
    const EGraphView& view = *view_;
    // Which place the operations of a class work in stands in what asked for them.
    std::map<uint32_t, std::string> place;
    const egraph::FunctionId made = graph_.FindFunction("Made");
    graph_.ForEachRow(made, [&](const auto& row) {
      const ClassRef c = view.ClassOf(row.output());
      if (c.valid()) place[c.index] = Text(row.arg(1));
    });
    nodes_.resize(view.node_count());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const ENodeRef n{i};
      NodeFacts& facts = nodes_[i];
      const std::string& function = view.function(n).name;
      const auto args = view.NodeArgs(n);
      if (function == "Ahead") {
        const int64_t depth = graph_.AsI64(args[0]);
        facts.cost[kBytes] = static_cast<double>(depth) * demand_.batch_bytes;
        facts.labels = {{kDepthId, std::to_string(depth)}, {kStagingId, Text(args[1])}};
      } else if (function == "Move" || function == "Along") {
        const bool along = function == "Along";
        const std::string what = Text(args[1]);
        if (what == "batch") facts.labels = {{kStagesId, along ? "fused" : "split"}};
        facts.cost = MoveCost(what, Text(args[2]), Text(args[3]), along);
      } else if (function == "Here") {
        // A batch that is used where it is staged.
        const ClassRef there = view.NodeChildren(n)[0];
        if (there.valid() && view.function(view.FirstNode(there)).name == "Run1") {
          facts.labels = {{kStagesId, ""}};
        }
      } else if (function == "CutAt") {
        const std::string cut = Text(args[1]);
        const int64_t parts = graph_.AsI64(args[2]);
        const Site& site = *site_at_.at(Text(args[0]));
        facts.labels = {{kCutId, cut}, {kMicroId, std::to_string(parts)}};
        const auto at = std::find_if(site.cuts.begin(), site.cuts.end(),
                                     [&](const auto& c) { return CutLabel(c) == cut; });
        facts.cost[kCompute] = model_.StagesTime(site, *at, parts);
      } else if (function == "Run1" || function == "Run2" || function == "Rerun2" ||
                 function == "Pipe2") {
        const std::string op = Text(args[0]);
        const Site& site = SiteOf(Text(args[1]), place.at(view.NodeClass(n).index));
        facts.site = &site;
        facts.labels = {{NodeDecision(op), site.label}};
        if (op == "load") {
          facts.cost[kLoad] = model_.LoadTime(site.nodes[0], site.memories[0]);
        } else if (op == "forward_backward") {
          facts.labels.emplace_back(kPartitionId, PartitionOf(site));
          if (function != "Pipe2") {
            facts.labels.insert(facts.labels.end(), {{kCutId, ""}, {kMicroId, ""}});
            facts.cost[kCompute] =
                model_.ModelTime(site) * (function == "Rerun2" ? kRecomputeFactor : 1);
          }
        } else {
          facts.cost[kCompute] = model_.UpdateTime(site.nodes[0], site.memories[0]);
        }
      }
    }
  }

  ParetoCost NodeCost(ENodeRef n, const Held& held) const {
    const NodeFacts& facts = nodes_[n.index];
    for (const auto& [decision, label] : facts.labels) {
      const auto hold = held.find(decision);
      if (hold == held.end() || hold->second == label) continue;
      ParetoCost never{};
      never[kBytes] = kNever;
      return never;
    }
    return facts.cost;
  }

  // ---- Choice -------------------------------------------------------------------------------

  // The placements under `held`, of which the depth is a part, that none beats in all components.
  std::vector<Plan> Front(const Held& held, int64_t depth) {
    if (out_of_work_) return {};
    egraph::ParetoOptions options;
    options.components = kComponents;
    options.max_work = left_;
    options.node_cost = [&](const EGraphView&, ENodeRef n) { return NodeCost(n, held); };
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
      std::copy_n(term.cost.begin(), static_cast<size_t>(kComponents), plan.cost.begin());
      plan.depth = depth;
      plan.SetTime();
      plan.nodes = term.nodes;
      for (ENodeRef n : term.nodes) {
        for (const auto& [decision, label] : nodes_[n.index].labels) {
          if (!label.empty()) plan.label[decision] = label;
        }
        if (view_->function(n).name == "StepAt") plan.home = Text(view_->NodeArgs(n)[0]);
      }
      front.push_back(std::move(plan));
    }
    return front;
  }

  // The best plan under `held`; the fewest steps in flight where several are as good.
  std::optional<Plan> Best(const Held& held) {
    std::optional<Plan> best;
    for (int64_t d = 1; d <= max_depth_; ++d) {
      const auto depth = held.find(kDepthId);
      if (depth != held.end() && depth->second != std::to_string(d)) continue;
      Held at = held;
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
            NodeDecision("model_state"),
            kStagesId,
            kDepthId};
  }

  // What `--force` and the mode of the search hold the plan to; nothing after a failure.
  std::optional<Held> Holds() {
    Held held;
    for (const std::string& id : Decisions()) {
      const auto forced = options_.forced.find(id);
      if (forced == options_.forced.end()) continue;
      const std::vector<std::string>& choices = choices_[id];
      if (std::find(choices.begin(), choices.end(), forced->second) == choices.end()) {
        Fail("'" + forced->second + "' is no choice for " + id + WhyNotShared(id, forced->second),
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
      std::vector<std::string> order = choices_[id];
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
    const Site& site = *std::find_if(sites_.begin(), sites_.end(),
                                     [&](const Site& s) { return s.label == label; });
    if (op == "load") return model_.LoadTime(site.nodes[0], site.memories[0]);
    if (op == "model_state") return model_.UpdateTime(site.nodes[0], site.memories[0]);
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
    if (!best) {
      Fail(
          "no path of edges carries the batch and the state to where they are needed, or the "
          "staging buffers do not fit",
          "add the missing edges, or make the batch smaller");
      return;
    }
    result_.explanation.report.candidates = egraph::CountTerms(*view_, root_);

    telling_ = true;
    for (const std::string& id : Decisions()) {
      // Where there is one way alone nothing is decided, but for the nodes and the depth.
      const bool always = id.starts_with("l1/node.") || id == kDepthId;
      if (!best->label.contains(id) || (!always && choices_[id].size() < 2)) continue;
      Explain(id, *best, *held);
    }
    search::TraceRules(graph_, first_added_, result_.explanation);

    const auto one = [&](const char* op) { return NodeNamed(best->label.at(NodeDecision(op))); };
    Placement place;
    place.storage = storage_;
    place.loader = one("load");
    place.staging = NodeNamed(best->label.at(kStagingId));
    place.update = one("model_state");
    place.home = NodeNamed(best->home);
    for (ENodeRef n : best->nodes) {
      const Site* site = nodes_[n.index].site;
      if (site == nullptr || Text(view_->NodeArgs(n)[0]) != "forward_backward") continue;
      place.model = site->nodes;
      place.resident = site->memories;
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

  // Of plans that are as good, that with the first label in each decision, in their order.
  void PreferFirst(Held held, Plan& best) {
    for (const std::string& id : Decisions()) {
      const auto chosen = best.label.find(id);
      if (chosen == best.label.end() || held.contains(id)) continue;
      for (const std::string& label : choices_[id]) {
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

  void Explain(const std::string& id, const Plan& best, const Held& held) {
    search::Decision decision;
    decision.id = id;
    decision.chosen = best.label.at(id);
    decision.cost = CostOf(best);
    decision.forced = options_.forced.contains(id);
    std::vector<std::string> excluded;
    for (const std::string& label : choices_[id]) {
      if (label == decision.chosen) continue;
      // A cut stands beside those into as many stages.
      const auto bars = [](const std::string& cut) {
        return std::count(cut.begin(), cut.end(), '|');
      };
      if (id == kCutId && bars(label) != bars(decision.chosen)) continue;
      Held other = held;
      other[id] = label;
      // Who loses, and by how much, is told beside the search.
      left_ = options_.budget.work;
      out_of_work_ = false;
      if (const auto plan = Best(other)) {
        AddLoser(decision, best, label, *plan);
      } else if (out_of_work_) {
        decision.pruned.push_back({What(id) + label, "not compared: the budget of work ended", 1});
      } else if (std::string why = WhyNot(id, label); !why.empty()) {
        decision.pruned.push_back({What(id) + label, std::move(why), 1});
      } else {
        excluded.push_back(label);
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

  // Of a partition that there is none of: what keeps a batch from being cut so.
  std::string WhyNotShared(const std::string& id, const std::string& label) const {
    if (id != kPartitionId) return "";
    if (!demand_.why_beside_state.empty()) return ": " + demand_.why_beside_state;
    for (const auto& [parts, why] : demand_.why_not_shared) {
      const bool asked = label == "data(" + std::to_string(parts) + ")" ||
                         (label.starts_with("stages(") && parts == 2);
      if (asked) return ": " + why;
    }
    return "";
  }

  static std::string What(const std::string& id) {
    if (id == kDepthId) return "depth ";
    if (id == kStagingId) return "staging in ";
    return id.starts_with("l1/node.") ? "node " : "";
  }

  // Why no plan is left with a label, where one cause can be told.
  std::string WhyNot(const std::string& id, const std::string& label) const {
    if (id == NodeDecision("forward_backward")) {
      if (const auto why = why_not_.find(label); why != why_not_.end()) return why->second;
    }
    if (id == NodeDecision("model_state")) {
      for (uint32_t memory : LocalMemories(system_, NodeNamed(label))) {
        if (!model_.StateFits(memory)) return "state larger than " + Name(memory) + "'s memory";
      }
    }
    if (id == kStagingId || id == NodeDecision("load")) {
      const std::vector<uint32_t> memories = id == kStagingId
                                                 ? std::vector<uint32_t>{NodeNamed(label)}
                                                 : LocalMemories(system_, NodeNamed(label));
      const bool reached = std::any_of(memories.begin(), memories.end(), [&](uint32_t memory) {
        return model_.ReadTime(storage_, memory) < kNever;
      });
      if (!reached) return "no path of edges leads from " + Name(storage_) + " to it";
    }
    if (id == kDepthId) {
      const auto why = why_not_depth_.find(std::stoll(label));
      if (why != why_not_depth_.end()) return why->second;
    }
    return "";
  }

  // The rules behind an operation's e-node and behind how its first operand gets there: what stands
  // in the term between it and the next operation.
  void CiteRules(const std::string& op, const std::vector<ENodeRef>& term,
                 search::Decision& decision) const {
    bool inside = false;
    std::set<std::string> cited;
    for (ENodeRef n : term) {
      if (nodes_[n.index].site != nullptr) inside = Text(view_->NodeArgs(n)[0]) == op;
      const egraph::RuleId id = view_->NodeRule(n);
      if (!inside || id == egraph::kInitial || id == egraph::kCongruence) continue;
      const egraph::Rule& rule = graph_.rule(id);
      if (!cited.insert(rule.name).second) continue;
      decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
    }
  }

  const System& system_;
  const StepDemand& demand_;
  const std::vector<std::string>& isas_;
  int64_t max_depth_;
  const search::LoweringOptions& options_;
  const PlacementModel model_;
  PlacementResult result_;
  uint32_t storage_ = 0;
  int64_t nodes_that_compute_ = 0;  // of those that may share a batch
  std::vector<Site> sites_;
  std::vector<uint32_t> homes_;     // memories that the state may lie in
  std::vector<uint32_t> stagings_;  // memories that batches may be staged in
  std::set<size_t> shifted_;        // numbers of stages whose cuts are stated
  std::set<std::pair<std::string, std::string>> adjacent_;  // staging memory, place
  std::string facts_;
  std::map<std::string, std::vector<std::string>> choices_;  // by decision, in order
  std::map<std::string, const Site*> site_at_;               // by place
  std::map<std::string, std::string> why_not_;               // by site, where it is none
  std::map<int64_t, std::string> why_not_depth_;
  egraph::EGraph graph_;
  uint32_t first_added_ = 0;  // rule of the user's
  uint64_t left_ = 0;         // of the budget of work
  bool out_of_work_ = false;
  bool telling_ = false;  // who lost, which is beside the search and its budget
  const EGraphView* view_ = nullptr;
  std::vector<NodeFacts> nodes_;  // by e-node
  ClassRef root_;
};

}  // namespace

PlacementResult Place(const System& system, const StepDemand& demand,
                      const std::vector<std::string>& isas, int64_t max_depth,
                      const search::LoweringOptions& options) {
  return Placer(system, demand, isas, max_depth, options).Run();
}

}  // namespace l3c::l1
