#include "layers/l2/space_graph.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "egraph/program.h"
#include "egraph/run.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l2 {
namespace {

using egraph::ClassRef;
using egraph::EGraphView;
using egraph::ENodeRef;

// Arguments of (Stage chain h v w norm activation) and (Output chain h).
enum StageArg : size_t { kStageNumber = 1, kStageIn, kStageWidth, kStageNorm, kStageActivation };
constexpr size_t kOutputHidden = 1;

}  // namespace

// Which alternatives of depth and layers may be taken.
struct SpaceGraph::Allowed {
  std::vector<bool> hidden;  // by number of hidden stages
  struct Stage {
    std::vector<bool> width, norm, activation;
  };
  std::vector<Stage> stages;
};

SpaceGraph::SpaceGraph(const Space& space, const Scorer& scorer, const search::Budget& budget)
    : space_(space), scorer_(scorer), budget_work_(budget.work) {
  const rewrites::RuleFile* file = rewrites::Find("lower_l3_l2");
  const auto loaded = egraph::LoadProgram(graph_, file->text, file->path);
  if (!loaded.ok()) throw std::logic_error(loaded.status.ToString());

  auto fact = [&](std::string_view relation, std::initializer_list<int64_t> values) {
    std::vector<egraph::Value> row;
    for (int64_t v : values) row.push_back(graph_.I64(v));
    graph_.Insert(graph_.FindFunction(relation), row);
  };
  auto indices = [&](std::string_view relation, size_t count) {
    for (size_t i = 0; i < count; ++i) fact(relation, {static_cast<int64_t>(i)});
  };
  const Priors& p = space.priors;
  fact("Features", {space.features});
  fact("DepthBound", {space.max_stages});
  fact("WidthBound", {space.widths.empty() ? 0 : space.widths.back()});
  for (int64_t width : space.widths) fact("PowerOfTwo", {width});
  for (int64_t batch : p.batches) fact("Batch", {batch});
  indices("Norm", p.norms.size());
  indices("Activation", p.activations.size());
  for (size_t o = 0; o < p.optimizers.size(); ++o) {
    for (size_t r = 0; r < p.optimizers[o].rates.size(); ++r) {
      fact("LearningRate", {static_cast<int64_t>(o), static_cast<int64_t>(r)});
    }
  }
  indices("Warmup", p.warmups.size());
  indices("Decay", p.decays.size());
  fact("TermCount", {static_cast<int64_t>(space.fitting_losses.size())});
  for (size_t t = 0; t < space.fitting_losses.size(); ++t) {
    for (size_t l : space.fitting_losses[t]) {
      fact("Fits", {static_cast<int64_t>(t), static_cast<int64_t>(l)});
    }
  }
  for (int64_t epochs : p.epochs) fact("EpochCount", {epochs});

  egraph::Budget run;
  run.max_nodes = budget.egraph_nodes;
  run.max_matches = budget.work;
  const egraph::RunReport report =
      egraph::RunRuleset(graph_, graph_.FindRuleset("l3_to_l2"), run);
  work_ = report.matches;
  stop_reason_ = egraph::StopReasonName(report.stop);
  if (report.cut_short()) {
    search::Timeout timeout;
    timeout.doing = "enumerating (" + stop_reason_ + ")";
    const bool nodes = report.stop == egraph::StopReason::kNodeLimit;
    timeout.spent = nodes ? report.rows : report.matches;
    timeout.budget = nodes ? budget.egraph_nodes : budget.work;
    timeout.hint = "tighten depth(n) or width(n)";
    timeout_ = timeout;
  }
  view_ = std::make_unique<EGraphView>(graph_);
  ReadNetworkNodes();
}

void SpaceGraph::ReadNetworkNodes() {
  const egraph::FunctionId stage = graph_.FindFunction("Stage");
  const egraph::FunctionId output = graph_.FindFunction("Output");
  nodes_.resize(view_->node_count());
  for (uint32_t n = 0; n < view_->node_count(); ++n) {
    const ENodeRef node{n};
    NetworkNode& found = nodes_[n];
    const auto args = view_->NodeArgs(node);
    auto number = [&](size_t i) { return graph_.AsI64(args[i]); };
    if (view_->NodeFunction(node) == stage) {
      const auto width =
          std::lower_bound(space_.widths.begin(), space_.widths.end(), number(kStageWidth));
      found.position = static_cast<size_t>(number(kStageNumber)) - 1;
      found.stage.width = static_cast<size_t>(width - space_.widths.begin());
      found.stage.norm = static_cast<size_t>(number(kStageNorm));
      found.stage.activation = static_cast<size_t>(number(kStageActivation));
      found.piece = &scorer_.Hidden(found.position == 0, number(kStageIn), found.stage);
    } else if (view_->NodeFunction(node) == output) {
      found.output = true;
      found.position = static_cast<size_t>(number(kOutputHidden));
      int64_t in = space_.features;
      if (found.position > 0) {
        // All stages of the chain's class are equally wide.
        const ENodeRef last = view_->FirstNode(view_->NodeChildren(node)[0]);
        in = graph_.AsI64(view_->NodeArgs(last)[kStageWidth]);
      }
      found.piece = &scorer_.Output(found.position, in);
    }
  }
}

ClassRef SpaceGraph::ClassOf(std::string_view request) const {
  const auto value = graph_.Lookup(graph_.FindFunction(request), {});
  return value ? view_->ClassOf(*value) : ClassRef();
}

double SpaceGraph::CountCandidates() const {
  return egraph::CountTerms(*view_, ClassOf("MethodWanted"));
}

SpaceGraph::Allowed SpaceGraph::Mask(const Restriction& restriction) const {
  Allowed allowed;
  const std::string prefix = "l2/" + space_.model->name + "/";
  const Priors& p = space_.priors;
  for (int64_t d = 1; d <= space_.max_stages; ++d) {
    const size_t stages = static_cast<size_t>(d);
    allowed.hidden.push_back(restriction.Allows(prefix + "depth", std::to_string(d)));
    if (d == space_.max_stages) break;
    const std::string layer = prefix + "layer" + std::to_string(stages) + ".";
    Allowed::Stage& stage = allowed.stages.emplace_back();
    for (int64_t w : space_.widths) {
      stage.width.push_back(restriction.Allows(layer + "width", support::PrintInteger(w)));
    }
    for (const FormPrior& norm : p.norms) {
      stage.norm.push_back(restriction.Allows(layer + "norm", norm.label));
    }
    for (const FormPrior& act : p.activations) {
      stage.activation.push_back(restriction.Allows(layer + "activation", act.label));
    }
    // A network that lacks a layer has none of its choices.
    for (const auto& [id, label] : restriction.required) {
      if (!id.starts_with(layer)) continue;
      for (size_t h = 0; h < stages; ++h) allowed.hidden[h] = false;
    }
  }
  return allowed;
}

egraph::ParetoResult SpaceGraph::Extract(egraph::ParetoOptions options) {
  options.max_work = budget_work_ > work_ ? budget_work_ - work_ : 0;
  egraph::ParetoResult result =
      egraph::ParetoExtract(*view_, ClassOf("NetworkWanted"), options);
  work_ += result.considered;
  exhausted_ = exhausted_ || result.work_exhausted;
  return result;
}

bool SpaceGraph::Allows(const Allowed& allowed, const NetworkNode& node) const {
  if (node.output) return allowed.hidden[node.position];
  const Allowed::Stage& stage = allowed.stages[node.position];
  return stage.width[node.stage.width] && stage.norm[node.stage.norm] &&
         stage.activation[node.stage.activation];
}

std::vector<Choice> SpaceGraph::Networks(size_t batch, size_t optimizer,
                                         const Restriction& restriction, size_t k) {
  const Allowed allowed = Mask(restriction);
  const int64_t rows = space_.priors.batches[batch];
  egraph::ParetoOptions options;
  options.k = k;
  options.components = 2;
  if (auto budget = space_.model->param_budget()) {
    options.components = 3;
    options.upper_bounds[2] = static_cast<double>(*budget);
  }
  options.node_cost = [&](const EGraphView&, ENodeRef n) {
    const NetworkNode& node = nodes_[n.index];
    egraph::ParetoCost cost{};
    if (node.piece == nullptr) return cost;
    if (!Allows(allowed, node)) {
      cost[0] = std::numeric_limits<double>::infinity();
      return cost;
    }
    cost[0] = node.piece->log_steps;
    cost[1] = scorer_.Seconds(node.piece->work, rows, optimizer);
    cost[2] = static_cast<double>(node.piece->work.parameters);
    return cost;
  };
  std::vector<Choice> choices;
  for (const egraph::ParetoTerm& term : Extract(options).terms) choices.push_back(Decode(term));
  return choices;
}

std::optional<int64_t> SpaceGraph::FewestParameters(const Restriction& restriction) {
  const Allowed allowed = Mask(restriction);
  egraph::ParetoOptions options;
  options.node_cost = [&](const EGraphView&, ENodeRef n) {
    const NetworkNode& node = nodes_[n.index];
    egraph::ParetoCost cost{};
    if (node.piece == nullptr) return cost;
    cost[0] = Allows(allowed, node) ? static_cast<double>(node.piece->work.parameters)
                                    : std::numeric_limits<double>::infinity();
    return cost;
  };
  const auto result = Extract(options);
  if (result.terms.empty()) return std::nullopt;
  return static_cast<int64_t>(result.terms.front().cost[0]);
}

Choice SpaceGraph::Decode(const egraph::ParetoTerm& term) const {
  Choice choice;
  for (ENodeRef n : term.nodes) {
    const NetworkNode& node = nodes_[n.index];
    if (node.piece == nullptr) continue;
    if (node.output) {
      choice.hidden.resize(node.position);
    } else {
      choice.hidden[node.position] = node.stage;
    }
  }
  return choice;
}

std::vector<search::RuleUse> SpaceGraph::RulesFor(std::string_view constructor,
                                                  std::string_view fact) const {
  std::vector<search::RuleUse> uses;
  auto add = [&](std::string_view function) {
    const egraph::FunctionId id = graph_.FindFunction(function);
    std::optional<egraph::RuleId> first;
    graph_.ForEachRow(id, [&](const egraph::Row& row) {
      if (!first) first = row.rule();
    });
    if (!first || *first == egraph::kInitial) return;
    const egraph::Rule& rule = graph_.rule(*first);
    uses.push_back({rule.name, rule.file, static_cast<int>(rule.line)});
  };
  if (!fact.empty()) add(fact);
  add(constructor);
  return uses;
}

}  // namespace l3c::l2
