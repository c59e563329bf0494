// Rules in rewrites/placement.egg. What is computed here are the facts that they start from and the
// cost of each e-node; see place.h for the assumed figures.
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
#include "layers/search/rule_trace.h"
#include "layers/search/saturation.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l1 {
namespace {

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;
using egraph::ParetoCost;

constexpr double kCpuClock = 2.5e9;
constexpr double kGpuClock = 1.5e9;
constexpr double kGpuLanes = 128;
// Of a GPU's own memory, which a system description does not give.
constexpr double kGpuMemoryRate = 900e9;

// The operations of a step, in the order of their decisions.
constexpr std::array<const char*, 3> kOperations = {"load", "forward_backward", "model_state"};
// Components of the cost: what the loader's side takes, and what the rest does.
constexpr size_t kLoadTime = 0;
constexpr size_t kComputeTime = 1;

// Bandwidth of the widest path between two nodes that passes through no other place that holds
// bytes; 0 when there is none.
double WidestPath(const System& system, uint32_t from, uint32_t to) {
  std::vector<double> width(system.nodes.size(), 0);
  std::vector<bool> done(system.nodes.size());
  width[from] = std::numeric_limits<double>::infinity();
  for (;;) {
    std::optional<uint32_t> next;
    for (uint32_t n = 0; n < width.size(); ++n) {
      if (!done[n] && width[n] > 0 && (!next || width[n] > width[*next])) next = n;
    }
    if (!next) return 0;
    if (*next == to) return width[to];
    done[*next] = true;
    const SystemNode& node = system.nodes[*next];
    if (*next != from && (HoldsBuffers(node) || node.kind == NodeKind::kStorage)) continue;
    for (const Edge& edge : system.edges) {
      const auto relax = [&](uint32_t a, uint32_t b) {
        if (a == *next) width[b] = std::max(width[b], std::min(width[a], edge.bandwidth));
      };
      relax(edge.from, edge.to);
      if (edge.both_ways) relax(edge.to, edge.from);
    }
  }
}

// Choices that a plan is held to: operation → compute node.
using Held = std::map<std::string, std::string>;

// One placement of the graph with its two times.
struct Scored {
  double load = 0;
  double compute = 0;
  std::map<std::string, std::string> node;  // by operation
  std::string home;                         // where the state lies
  std::vector<ENodeRef> nodes;
};

// Times of a step when d steps are in flight: at depth 1 one thing after the other, beyond that the
// loader works ahead and the slower side sets the pace.
double StepTime(const Scored& plan, int64_t depth) {
  return depth == 1 ? plan.load + plan.compute : std::max(plan.load, plan.compute);
}

// A plan with its depth, and the figures it is compared by.
struct Plan {
  Scored placed;
  int64_t depth = 1;
  double time = 0;
  double bytes = 0;

  bool Better(const Plan& other) const {
    return std::tie(time, bytes) < std::tie(other.time, other.bytes);
  }
};

class Placer {
 public:
  Placer(const System& system, const StepDemand& demand, const std::vector<std::string>& isas,
         int64_t max_depth, const search::LoweringOptions& options)
      : system_(system), demand_(demand), isas_(isas), max_depth_(max_depth), options_(options) {}

  PlacementResult Run() {
    result_.explanation.lowering = "l2->l1";
    if (!StateFacts() || !Saturate()) return std::move(result_);
    const EGraphView view(graph_);
    view_ = &view;
    root_ = view.ClassOf(*graph_.Lookup(graph_.FindFunction("Step"), {}));
    Choose();
    return std::move(result_);
  }

 private:
  bool Fail(std::string reason, std::string hint) {
    result_.failure = search::NoCandidates{std::move(reason), std::move(hint), system_.span};
    return false;
  }
  void Prune(std::string what, std::string why) {
    result_.explanation.pruned.push_back({std::move(what), std::move(why), 1});
  }

  bool HasBackend(const SystemNode& node) const {
    return std::find(isas_.begin(), isas_.end(), node.isa) != isas_.end();
  }

  // ---- Facts --------------------------------------------------------------------------------

  bool StateFacts() {
    std::optional<uint32_t> storage;
    std::vector<uint32_t> computing, holding;
    for (uint32_t n = 0; n < system_.nodes.size(); ++n) {
      const SystemNode& node = system_.nodes[n];
      if (node.kind == NodeKind::kStorage && !storage) storage = n;
      if (HoldsBuffers(node)) holding.push_back(n);
      if (node.kind != NodeKind::kCompute) continue;
      if (LocalMemories(system_, n).empty()) {
        Prune("node " + node.name, "it has no edge to a memory node and no vram");
      } else if (!HasBackend(node)) {
        Prune("node " + node.name, "there is no backend for isa " + node.isa);
      } else {
        computing.push_back(n);
      }
    }
    if (!storage) return Fail("the system has no storage node for the data", "add one");
    if (computing.empty()) {
      return Fail("no compute node of the system can be used",
                  "add a node with isa: " + isas_.front() + " and an edge to a memory node");
    }
    storage_ = *storage;

    facts_ = "(set (Name (Data)) \"data\")\n(AtRest (Data) \"" + Name(storage_) + "\")\n";
    std::set<uint32_t> homes;
    for (uint32_t c : computing) {
      const uint32_t memory = LocalMemories(system_, c).front();
      Fact("Local", {Name(c), Name(memory)});
      for (const char* op : kOperations) {
        // Files are read by the host's own processors.
        if (op == kOperations[0] && system_.nodes[c].vram > 0) continue;
        Fact("CanRun", {op, Name(c)});
        able_[op].push_back(Name(c));
      }
      homes.insert(memory);
    }
    bool fits = false;
    for (uint32_t memory : homes) {
      if (demand_.state_bytes <= static_cast<double>(BufferCapacity(system_.nodes[memory]))) {
        Fact("StateFits", {Name(memory)});
        fits = true;
      } else {
        Prune("state in " + Name(memory),
              "it needs " + support::PrintBytes(static_cast<int64_t>(demand_.state_bytes)));
      }
    }
    if (!fits) {
      return Fail("parameters and optimiser state need " +
                      support::PrintBytes(static_cast<int64_t>(demand_.state_bytes)) +
                      ", more than any memory of the system has",
                  "use a smaller model, or an update with less state");
    }
    holding.push_back(storage_);
    for (uint32_t from : holding) {
      for (uint32_t to : holding) {
        if (from == to || to == storage_) continue;
        const double rate = WidestPath(system_, from, to);
        if (rate == 0) continue;
        Fact("Link", {Name(from), Name(to)});
        link_rate_[{Name(from), Name(to)}] = rate;
      }
    }
    return true;
  }

  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }

  void Fact(const std::string& relation, const std::vector<std::string>& args) {
    facts_ += "(" + relation;
    for (const std::string& arg : args) facts_ += " \"" + arg + "\"";
    facts_ += ")\n";
  }

  bool Saturate() {
    const rewrites::RuleFile* rules = rewrites::Find("placement");
    if (rules == nullptr) {
      return Fail("there are no rules for placement", "restore rewrites/placement.egg");
    }
    egraph::ProgramOptions limits;
    limits.budget.max_nodes = options_.budget.egraph_nodes;
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
    report.work_budget = options_.budget.work;
    report.egraph_nodes = graph_.NodeCount();
    report.egraph_classes = graph_.ClassCount();
    report.stop_reason = std::string(egraph::StopReasonName(run.stop));
    if (run.cut_short()) {
      result_.failure =
          search::CutShort(run, options_.budget, "saturating", "raise the budget of the search");
      return false;
    }
    if (!graph_.Lookup(graph_.FindFunction("Step"), {})) {
      return Fail("no rule gives a step a place", "restore rewrites/placement.egg");
    }
    return true;
  }

  // ---- Costs --------------------------------------------------------------------------------

  const SystemNode& NodeNamed(const std::string& name) const {
    return system_.nodes[*FindNode(system_, name)];
  }

  // Rate between a compute node and the memory it computes in.
  double LocalRate(const std::string& name) const {
    const uint32_t node = *FindNode(system_, name);
    if (system_.nodes[node].vram > 0) return kGpuMemoryRate;
    const uint32_t memory = LocalMemories(system_, node).front();
    double rate = 0;
    for (const Edge& edge : system_.edges) {
      const bool between =
          (edge.from == node && edge.to == memory) || (edge.from == memory && edge.to == node);
      if (between) rate = std::max(rate, edge.bandwidth);
    }
    return rate;
  }

  // Roofline: the longer of arithmetic and traffic.
  double RunTime(const std::string& op, const std::string& node) const {
    const double flops = AssumedFlops(NodeNamed(node));
    const double rate = LocalRate(node);
    if (op == "load") return 2 * demand_.batch_bytes / rate;  // decoded and written
    if (op == "forward_backward") {
      const double bytes =
          demand_.batch_bytes + 2 * demand_.parameter_bytes + demand_.gradient_bytes;
      return std::max(demand_.model_flops / flops, bytes / rate);
    }
    const double bytes = demand_.gradient_bytes + 2 * demand_.state_bytes;
    return std::max(demand_.update_flops / flops, bytes / rate);
  }

  double BytesOf(const std::string& what) const {
    if (what == "gradients") return demand_.gradient_bytes;
    if (what == "parameters") return demand_.parameter_bytes;
    return demand_.batch_bytes;
  }

  std::string Text(egraph::Value value) const { return graph_.AsString(value); }

  ParetoCost NodeCost(const EGraphView& view, ENodeRef n, const Held& held) const {
    ParetoCost cost{};
    const std::string& function = view.function(n).name;
    const auto args = view.NodeArgs(n);
    if (function == "Move") {
      const std::string what = Text(args[1]);
      const double time = BytesOf(what) / link_rate_.at({Text(args[2]), Text(args[3])});
      cost[what == "data" || what == "batch" ? kLoadTime : kComputeTime] = time;
    } else if (function == "Run1" || function == "Run2") {
      const std::string op = Text(args[0]);
      const std::string node = Text(args[1]);
      const auto hold = held.find(op);
      const double time = hold != held.end() && hold->second != node
                              ? std::numeric_limits<double>::infinity()
                              : RunTime(op, node);
      cost[op == kOperations[0] ? kLoadTime : kComputeTime] = time;
    }
    return cost;
  }

  // ---- Choice -------------------------------------------------------------------------------

  // The placements under `held` of which none is beaten in both times.
  std::vector<Scored> Front(const Held& held) {
    egraph::ParetoOptions options;
    options.components = 2;
    options.max_work = options_.budget.work;
    options.node_cost = [&](const EGraphView& view, ENodeRef n) { return NodeCost(view, n, held); };
    const egraph::ParetoResult result = egraph::ParetoExtract(*view_, root_, options);
    result_.explanation.report.work += result.considered;
    std::vector<Scored> front;
    for (const egraph::ParetoTerm& term : result.terms) {
      Scored plan;
      plan.load = term.cost[kLoadTime];
      plan.compute = term.cost[kComputeTime];
      plan.nodes = term.nodes;
      for (ENodeRef n : term.nodes) {
        const std::string& function = view_->function(n).name;
        const auto args = view_->NodeArgs(n);
        if (function == "Run1" || function == "Run2") plan.node[Text(args[0])] = Text(args[1]);
        if (function == "StepAt") plan.home = Text(args[0]);
      }
      front.push_back(std::move(plan));
    }
    return front;
  }

  // The best plan under `held`, at `depth` or at any that fits.
  std::optional<Plan> Best(const Held& held, std::optional<int64_t> depth) {
    std::optional<Plan> best;
    for (const Scored& placed : Front(held)) {
      for (int64_t d = depth.value_or(1); d <= depth.value_or(max_depth_); ++d) {
        const std::string staging =
            Name(LocalMemories(system_, *FindNode(system_, placed.node.at("load"))).front());
        const double staged = static_cast<double>(d) * demand_.batch_bytes;
        const double resident = placed.home == staging ? demand_.state_bytes : 0;
        if (staged + resident > static_cast<double>(BufferCapacity(NodeNamed(staging)))) continue;
        Plan plan{placed, d, StepTime(placed, d), demand_.state_bytes + staged};
        if (!best || plan.Better(*best)) best = std::move(plan);
        ++result_.explanation.report.scored;
      }
    }
    return best;
  }

  search::CostVector CostOf(const Plan& plan) const {
    return {{"step_time", plan.time, "s", "analytical"}, {"bytes", plan.bytes, "B", "analytical"}};
  }

  static std::string DecisionId(const std::string& op) { return "l1/node." + op; }
  static constexpr char kDepthId[] = "l1/pipeline_depth";

  // What `--force` and the mode of the search hold the plan to; nothing after a failure.
  std::optional<std::pair<Held, std::optional<int64_t>>> Holds() {
    Held held;
    std::optional<int64_t> depth;
    for (const char* op : kOperations) {
      const auto forced = options_.forced.find(DecisionId(op));
      if (forced == options_.forced.end()) continue;
      const auto& able = able_[op];
      if (std::find(able.begin(), able.end(), forced->second) == able.end()) {
        Fail("'" + forced->second + "' is no choice for " + DecisionId(op),
             "the choices are " + Join(able));
        return std::nullopt;
      }
      held[op] = forced->second;
    }
    if (const auto forced = options_.forced.find(kDepthId); forced != options_.forced.end()) {
      std::vector<std::string> choices;
      for (int64_t d = 1; d <= max_depth_; ++d) choices.push_back(std::to_string(d));
      const auto it = std::find(choices.begin(), choices.end(), forced->second);
      if (it == choices.end()) {
        Fail("'" + forced->second + "' is no choice for " + std::string(kDepthId),
             "the choices are " + Join(choices));
        return std::nullopt;
      }
      depth = 1 + (it - choices.begin());
    }
    if (options_.mode == search::Mode::kEGraph) return std::pair{held, depth};

    // Node by node: the first that leaves a plan, or the fastest for its operation alone.
    for (const char* op : kOperations) {
      if (held.contains(op)) continue;
      std::vector<std::string> order = able_[op];
      if (options_.mode == search::Mode::kGreedy) {
        std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
          return RunTime(op, a) < RunTime(op, b);
        });
      }
      for (const std::string& node : order) {
        held[op] = node;
        if (Best(held, depth)) break;
        held.erase(op);
      }
    }
    if (options_.mode == search::Mode::kOff && !depth) depth = 1;
    return std::pair{held, depth};
  }

  static std::string Join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  void Choose() {
    const auto holds = Holds();
    if (!holds) return;
    const auto& [held, depth] = *holds;
    const auto best = Best(held, depth);
    if (!best) {
      Fail(
          "no path of edges carries the batch and the state to where they are needed, or the "
          "staging buffers do not fit",
          "add the missing edges, or make the batch smaller");
      return;
    }
    result_.explanation.report.candidates =
        egraph::CountTerms(*view_, root_) * static_cast<double>(max_depth_);

    for (const char* op : kOperations) ExplainNode(op, *best, held, depth);
    ExplainDepth(*best, held);
    search::TraceRules(graph_, first_added_, result_.explanation);

    Placement place;
    place.storage = storage_;
    place.loader = *FindNode(system_, best->placed.node.at("load"));
    place.model = *FindNode(system_, best->placed.node.at("forward_backward"));
    place.update = *FindNode(system_, best->placed.node.at("model_state"));
    place.staging = LocalMemories(system_, place.loader).front();
    place.resident = LocalMemories(system_, place.model).front();
    place.pipeline_depth = best->depth;
    result_.placement = place;
  }

  void AddLoser(search::Decision& decision, const Plan& winner, std::string label,
                const Plan& plan) {
    search::Loser loser;
    loser.label = std::move(label);
    loser.cost = CostOf(plan);
    loser.difference = search::Difference(loser.cost, decision.cost);
    const double load = plan.placed.load - winner.placed.load;
    const double compute = plan.placed.compute - winner.placed.compute;
    loser.decided_by = plan.time == winner.time     ? "bytes"
                       : plan.depth != winner.depth ? "step_time (no overlap of load and compute)"
                       : load > compute             ? "step_time (loading)"
                                                    : "step_time (computing)";
    decision.losers.push_back(std::move(loser));
  }

  static void SortLosers(search::Decision& decision) {
    std::stable_sort(decision.losers.begin(), decision.losers.end(),
                     [](const search::Loser& a, const search::Loser& b) {
                       return a.cost[0].value < b.cost[0].value;
                     });
  }

  void ExplainNode(const std::string& op, const Plan& best, const Held& held,
                   const std::optional<int64_t>& depth) {
    search::Decision decision;
    decision.id = DecisionId(op);
    decision.chosen = best.placed.node.at(op);
    decision.cost = CostOf(best);
    decision.forced = options_.forced.contains(decision.id);
    for (const std::string& node : able_[op]) {
      if (node == decision.chosen) continue;
      Held other = held;
      other[op] = node;
      if (const auto plan = Best(other, depth)) {
        AddLoser(decision, best, node, *plan);
      } else {
        decision.pruned.push_back({"node " + node, "no plan is left with it", 1});
      }
    }
    SortLosers(decision);
    CiteRules(op, best.placed.nodes, decision);
    result_.explanation.decisions.push_back(std::move(decision));
  }

  // The rules behind an operation's e-node and behind how its first operand gets there: what stands
  // in the term between it and the next operation.
  void CiteRules(const std::string& op, const std::vector<ENodeRef>& term,
                 search::Decision& decision) const {
    bool inside = false;
    std::set<std::string> cited;
    for (ENodeRef n : term) {
      const std::string& function = view_->function(n).name;
      if (function == "Run1" || function == "Run2") inside = Text(view_->NodeArgs(n)[0]) == op;
      const egraph::RuleId id = view_->NodeRule(n);
      if (!inside || id == egraph::kInitial || id == egraph::kCongruence) continue;
      const egraph::Rule& rule = graph_.rule(id);
      if (!cited.insert(rule.name).second) continue;
      decision.rules.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
    }
  }

  void ExplainDepth(const Plan& best, const Held& held) {
    search::Decision decision;
    decision.id = kDepthId;
    decision.chosen = std::to_string(best.depth);
    decision.cost = CostOf(best);
    decision.forced = options_.forced.contains(decision.id);
    for (int64_t d = 1; d <= max_depth_; ++d) {
      if (d == best.depth) continue;
      if (const auto plan = Best(held, d)) {
        AddLoser(decision, best, std::to_string(d), *plan);
      } else {
        decision.pruned.push_back({"depth " + std::to_string(d), "staging does not fit", 1});
      }
    }
    SortLosers(decision);
    result_.explanation.decisions.push_back(std::move(decision));
  }

  const System& system_;
  const StepDemand& demand_;
  const std::vector<std::string>& isas_;
  const int64_t max_depth_;
  const search::LoweringOptions& options_;
  PlacementResult result_;
  uint32_t storage_ = 0;
  std::string facts_;
  std::map<std::string, std::vector<std::string>> able_;  // operation → nodes, in their order
  std::map<std::pair<std::string, std::string>, double> link_rate_;
  egraph::EGraph graph_;
  uint32_t first_added_ = 0;  // rule of the user's
  const EGraphView* view_ = nullptr;
  ClassRef root_;
};

}  // namespace

double AssumedFlops(const SystemNode& node) {
  if (node.vram > 0 || node.sm > 0) {
    return static_cast<double>(std::max<int64_t>(node.sm, 1)) * kGpuLanes * 2 * kGpuClock;
  }
  const auto has = [&](std::string_view feature) {
    return std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  };
  const double lanes = has("avx512f") ? 16 : has("avx2") ? 8 : 4;
  const double multiply_add = has("avx512f") || has("fma") ? 2 : 1;
  constexpr double kPipes = 2;
  return static_cast<double>(std::max<int64_t>(node.cores, 1)) * lanes * multiply_add * kPipes *
         kCpuClock;
}

PlacementResult Place(const System& system, const StepDemand& demand,
                      const std::vector<std::string>& isas, int64_t max_depth,
                      const search::LoweringOptions& options) {
  return Placer(system, demand, isas, max_depth, options).Run();
}

}  // namespace l3c::l1
