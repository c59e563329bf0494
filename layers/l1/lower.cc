#include "layers/l1/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "layers/l1/graph_part.h"
#include "layers/l1/graph_work.h"
#include "layers/l1/naming.h"
#include "layers/l1/pipeline_writer.h"
#include "layers/l1/place.h"
#include "layers/l1/place_model.h"
#include "layers/l1/row_shares.h"
#include "layers/l1/tensor_body.h"
#include "layers/l1/update_plan.h"
#include "layers/l2/backward.h"
#include "layers/l2/expand.h"
#include "layers/l2/inputs.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/updates.h"
#include "layers/l2/verify.h"

namespace l3c::l1 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr char kActor[] = "model_state";
constexpr char kWindow[] = "weights";
constexpr char kMessage[] = "GradUpdate";
constexpr char kTrainGraph[] = "forward_backward";
constexpr char kEvalGraph[] = "evaluate";

// One metric's figures as outputs of a graph.
struct MetricOutputs {
  std::string name;
  std::string numerator;
  std::string denominator;
};

// The output of `graph` that is `node`; one is added where there is none.
std::string OutputFor(Graph& graph, NodeId node, const std::string& name) {
  for (const tensor::Output& output : graph.outputs()) {
    if (output.node == node) return output.name;
  }
  graph.AddOutput(name, node);
  return name;
}

std::vector<MetricOutputs> AddMetricOutputs(Graph& graph,
                                            const std::vector<l2::MetricNodes>& metrics) {
  std::vector<MetricOutputs> outputs;
  for (const l2::MetricNodes& metric : metrics) {
    MetricOutputs names;
    names.name = metric.name;
    names.numerator = OutputFor(graph, metric.numerator, metric.name + "_sum");
    names.denominator = OutputFor(graph, metric.denominator, metric.name + "_count");
    outputs.push_back(std::move(names));
  }
  return outputs;
}

// The outputs that metrics read, each once, in their order.
std::vector<tensor::Output> OutputsOf(const Graph& graph,
                                      const std::vector<MetricOutputs>& metrics) {
  std::vector<tensor::Output> outputs;
  for (const MetricOutputs& metric : metrics) {
    for (const std::string& name : {metric.numerator, metric.denominator}) {
      const auto same = [&](const tensor::Output& o) { return o.name == name; };
      if (std::any_of(outputs.begin(), outputs.end(), same)) continue;
      outputs.push_back(*std::find_if(graph.outputs().begin(), graph.outputs().end(), same));
    }
  }
  return outputs;
}

InitKind InitOf(const l2::Parameter& parameter) {
  switch (parameter.init) {
    case l2::Init::kZeros:
      return InitKind::kZeros;
    case l2::Init::kOnes:
      return InitKind::kOnes;
    case l2::Init::kKaimingNormal:
      return InitKind::kKaiming;
    case l2::Init::kNormal:
      return InitKind::kNormal;
  }
  return InitKind::kZeros;
}

class Lowering {
 public:
  Lowering(const l2::Module& module, const LowerOptions& options)
      : module_(module), options_(options) {}

  search::LoweringResult<Program> Run() {
    if (!Prepare() || !PlaceAll()) return std::move(result_);
    Build();
    result_.candidates.push_back({std::move(program_), cost_});
    return std::move(result_);
  }

 private:
  bool Fail(std::string reason, std::string hint, Span where = {}) {
    result_.failure = search::NoCandidates{std::move(reason), std::move(hint), where};
    return false;
  }

  // `#[l0::kernel("FILE")]` before a layer.
  struct LayerKernel {
    std::string layer, where;
    support::EscapeHatch hatch;
  };

  bool IsComputed(const LayerKernel& kernel) {
    bool found = eval_.graph.Find(kernel.layer).has_value();
    for (const Compute& train : train_) found = found || train.graph.Find(kernel.layer);
    if (found) return true;
    return Fail("'" + support::PrintEscapeHatch(kernel.hatch) + "' on " + kernel.where +
                    ": no value stands for the layer",
                "annotate another layer, or a let of an l1 file", kernel.hatch.span);
  }

  // The annotation for the value of a layer in a graph: made of what its own values are made of.
  // Those, and its parameters, are named after it.
  static support::EscapeHatch OfLayer(const Graph& graph, const LayerKernel& kernel) {
    if (kernel.hatch.args.find(", of: [") != std::string::npos) return kernel.hatch;
    std::vector<bool> inside(graph.size());
    std::vector<bool> outside(graph.size());
    inside[*graph.Find(kernel.layer)] = true;
    for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
      if (!inside[id]) continue;
      for (NodeId input : graph.node(id).inputs) {
        const tensor::Node& node = graph.node(input);
        if (node.op == Op::kConst) continue;
        const bool own = node.op != Op::kInput &&
                         (node.name.empty() || node.name.starts_with(kernel.layer + "_"));
        (own ? inside : outside)[input] = true;
      }
    }
    std::string names;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (outside[id]) names += (names.empty() ? "" : ", ") + graph.node(id).name;
    }
    support::EscapeHatch hatch = kernel.hatch;
    hatch.args += ", of: [" + names + "]";
    return hatch;
  }

  // `#[l1::on(NODE)]`: of a data declaration or a field, where it lies; of a model or a layer,
  // where it is computed. A step is one tensor graph, so all of a method's layers lie on one node.
  bool PlaceOn(const std::string& where, const support::EscapeHatch& hatch) {
    const std::string what = "'" + support::PrintEscapeHatch(hatch) + "' on " + where;
    const bool data = module_.spec.FindData(where.substr(0, where.find('.'))) != nullptr;
    const NodeKind kind = data ? NodeKind::kStorage : NodeKind::kCompute;
    std::vector<std::string> names;
    for (const SystemNode& node : options_.system.nodes) {
      if (node.kind == kind) names.push_back(node.name);
    }
    if (std::find(names.begin(), names.end(), hatch.args) == names.end()) {
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      return Fail(what + ": the system has no " + (data ? "storage" : "compute") + " node '" +
                      hatch.args + "'",
                  list.empty() ? "describe one in the system file" : "it has " + list, hatch.span);
    }
    std::optional<Pin>& pin = data ? data_pin_ : model_pin_;
    if (pin && pin->node != hatch.args) {
      return Fail(what + " disagrees with '" + pin->node + "' on " + pin->where,
                  data ? "one data declaration lies on one node"
                       : "the layers of a step are one tensor graph: name one node, or write the "
                         "placement as an l1 file",
                  hatch.span);
    }
    pin = Pin{hatch.args, where, hatch.span};
    return true;
  }

  // The search, held to what annotations ask for.
  bool PlaceWithPins(const StepDemand& demand) {
    search::LoweringOptions search = options_.search;
    constexpr char kModel[] = "l1/node.forward_backward";
    if (model_pin_) {
      const auto [forced, fresh] = search.forced.try_emplace(kModel, model_pin_->node);
      if (!fresh && forced->second != model_pin_->node) {
        return Fail("--force " + std::string(kModel) + "=" + forced->second +
                        " disagrees with the annotation on " + model_pin_->where,
                    "leave out one of the two", model_pin_->span);
      }
    }
    PlacementResult placed =
        Place(options_.system, demand, options_.isas, options_.pipeline_depth, search);
    result_.explanation = std::move(placed.explanation);
    result_.failure = std::move(placed.failure);
    if (!placed.placement) {
      auto* none = std::get_if<search::NoCandidates>(&*result_.failure);
      if (none != nullptr && model_pin_) none->where = model_pin_->span;
      return false;
    }
    place_ = *placed.placement;
    const std::string& storage = options_.system.nodes[place_.storage].name;
    if (data_pin_ && data_pin_->node != storage) {
      return Fail("the data of " + data_pin_->where + " lie on " + storage + ", not on '" +
                      data_pin_->node + "'",
                  "the first storage node of the system holds the data: put it first",
                  data_pin_->span);
    }
    return true;
  }

  // Expands the method into graphs and measures their work.
  bool Prepare() {
    result_.explanation.lowering = "l2->l1";
    if (module_.methods.empty()) return Fail("there are no methods", "write methods for a model");
    // Models of one goal train together: what concerns all stands in the methods of each.
    methods_ = module_.methods.front();
    std::vector<const support::Hints*> all_hints = {&module_.spec.hints};
    for (const l2::Methods& methods : module_.methods) all_hints.push_back(&methods.hints);
    for (const support::Hints* hints : all_hints) {
      for (const auto& [where, list] : *hints) {
        for (const support::EscapeHatch& hatch : list) {
          if (hatch.layer == "l2") continue;
          if (hatch.layer == "l1" && hatch.directive == "on") {
            if (!PlaceOn(where, hatch)) return false;
            continue;
          }
          const size_t layer = where.find(".infer.");
          if (hatch.layer == "l0" && hatch.directive == "kernel" && layer != std::string::npos) {
            kernels_.push_back({where.substr(layer + std::string_view(".infer.").size()), where,
                                WithAbsolutePath(hatch, options_.folder)});
            continue;
          }
          const std::vector<std::string> known = {hatch.layer == "l1" ? "on" : "kernel"};
          if (const std::string meant = support::ClosestMatch(hatch.directive, known);
              !meant.empty() && hatch.directive != meant) {
            return Fail("'" + support::PrintEscapeHatch(hatch) + "' on " + where + ": " +
                            hatch.layer + " has no '" + hatch.directive + "'",
                        "did you mean '" + meant + "'?", hatch.span);
          }
          // Dropping it would break its promise.
          return Fail("'" + support::PrintEscapeHatch(hatch) + "' on " + where +
                          " asks for what this lowering cannot do",
                      "remove it, or write the placement as an l1 file", hatch.span);
        }
      }
    }
    ApplyOverrides();
    batch_ = l2::BatchOf(methods_.sample);
    drop_last_ = l2::DropsLast(methods_.sample);
    seed_ = options_.seed.value_or(methods_.seed.value_or(0));
    forward_ = l2::ExpandForward(module_, methods_, batch_, {/*training=*/true, seed_});
    evaluation_ = l2::ExpandForward(module_, methods_, batch_);

    for (const auto& field : forward_.fields) {
      if (data_name_.empty()) data_name_ = field.data;
      if (field.data != data_name_) {
        return Fail("the loss reads both '" + data_name_ + "' and '" + field.data + "'",
                    "a batch comes from one data declaration", methods_.sample.span);
      }
    }
    const auto info = options_.data.find(data_name_);
    if (info == options_.data.end()) {
      return Fail("nothing is known about the files of data '" + data_name_ + "'",
                  "say where they are: --data " + data_name_ + "=DIR");
    }
    info_ = &info->second;
    const auto rows = info_->rows.find("train");
    const l2::SamplePlan plan = l2::PlanOf(methods_.sample);
    const int64_t samples = rows == info_->rows.end() ? 0 : l2::SamplesOf(plan, rows->second);
    if (samples < batch_) {
      const std::string what = plan.window > 0 ? " windows" : " rows";
      const int64_t most = samples / plan.shards;
      return Fail(
          "data '" + data_name_ + "' has " + std::to_string(samples) + what +
              " to train on, and a batch has " + std::to_string(batch_),
          most == 0 ? "train on more data" : "write batch: " + std::to_string(most) + " or less",
          methods_.sample.span);
    }
    l2::SamplePlan evaluated = plan;
    evaluated.shards = 1;
    const auto& phases = methods_.phases;
    has_test_ =
        info_->rows.contains("test") && l2::SamplesOf(evaluated, info_->rows.at("test")) > 0 &&
        std::any_of(phases.begin(), phases.end(), [](const auto& p) { return p.eval_every > 0; });

    const auto steps = l2::TotalSteps(methods_, rows->second);
    if (!steps) {
      return Fail("the phases together make more than " + std::to_string(l2::kMaxTotalSteps) +
                      " steps on the " + std::to_string(rows->second) + " rows of data '" +
                      data_name_ + "'",
                  "train for fewer epochs, or write 'steps: n' in place of them",
                  methods_.phases.front().span);
    }
    total_steps_ = *steps;
    updates_ = PlanUpdates(module_, methods_, forward_, total_steps_);
    if (updates_.variants.size() > 1 && forward_.turns.size() > 1) {
      return Fail(
          "phases that freeze layers or have an update of their own, and a goal of several "
          "turns",
          "write one of the two", methods_.phases.front().span);
    }
    for (size_t v = 0; v < updates_.variants.size(); ++v) {
      for (size_t t = 0; t < forward_.turns.size(); ++t) BuildTrainGraph(t, v);
    }
    BuildEvalGraph();
    for (const LayerKernel& kernel : kernels_) {
      if (!IsComputed(kernel)) return false;
    }
    return true;
  }

  void ApplyOverrides() {
    if (!options_.epochs && !options_.steps) return;
    l2::Phase phase = methods_.phases.empty() ? l2::Phase{"main"} : methods_.phases.front();
    phase.epochs = options_.steps ? 0 : *options_.epochs;
    phase.steps = options_.steps.value_or(0);
    methods_.phases = {phase};
  }

  static std::string VariantSuffix(size_t v) { return v == 0 ? "" : "_" + std::to_string(v + 1); }

  std::string ActorName(size_t model) const {
    return module_.methods.size() == 1 ? kActor : module_.methods[model].model + "_state";
  }

  // A tensor graph of the program and what it is handed.
  struct Compute {
    std::string name;
    Graph graph;
    std::vector<NodeId> args;  // of forward_.graph: the fields that it reads, then the mask
    std::vector<MetricOutputs> metrics;
    std::vector<size_t> models;         // whose parameters it reads
    std::vector<std::string> messages;  // "actor.message", sent when it is done
    std::string suffix;                 // of the buffers that are staged for it
    size_t variant = 0;
  };

  // Everything is named before differentiation, so that a gradient is named after what it is the
  // gradient of; and derived ops are expanded before that, so that nothing is renamed in between.
  void BuildTrainGraph(size_t t, size_t v) {
    l2::TurnNodes turn = forward_.turns[t];
    std::erase_if(turn.parameters,
                  [&](size_t p) { return updates_.variants[v].Freezes(forward_.parameters[p]); });
    Compute compute;
    compute.variant = v;
    compute.name =
        (forward_.turns.size() == 1 ? kTrainGraph : turn.name + "_step") + VariantSuffix(v);
    if (t > 0) compute.suffix = "_" + std::to_string(t + 1);
    for (const Compute& other : train_) {
      if (other.name == compute.name) compute.name += compute.suffix;
    }
    l2::ForwardGraph forward = forward_;
    compute.metrics = AddMetricOutputs(forward.graph, {forward_.metrics[turn.first_metric]});
    l2::BackwardGraph backward(forward, t, seed_, total_steps_ * forward_.ticks);
    NameValues(backward.graph());
    std::map<size_t, std::vector<size_t>> by_model;
    for (size_t p : turn.parameters) by_model[forward_.parameter_models[p]].push_back(p);
    for (const auto& [model, own] : by_model) {
      const l2::Methods& methods = module_.methods[model];
      const auto directions = l2::FindBackward(methods.backward.name)
                                  ->direct(backward, {&methods.backward, &methods, model, own});
      for (size_t i = 0; i < own.size(); ++i) {
        backward.graph().AddOutput(GradientName(own[i]), directions[i]);
      }
    }
    backward.Settle();
    Graph graph = backward.graph();
    NameValues(graph);
    GraphPart part;
    part.outputs = OutputsOf(graph, compute.metrics);
    // What two graphs of a step report is summed by its name.
    if (t > 0) {
      for (MetricOutputs& metric : compute.metrics) {
        for (tensor::Output& output : part.outputs) {
          if (output.name == metric.denominator) output.name += compute.suffix;
        }
        metric.denominator += compute.suffix;
      }
    }
    std::map<size_t, bool> updated;
    for (size_t i = 0; i < turn.parameters.size(); ++i) {
      const size_t p = turn.parameters[i];
      const std::string name = GradientName(p);
      const auto same = [&](const tensor::Output& o) { return o.name == name; };
      part.outputs.push_back(*std::find_if(graph.outputs().begin(), graph.outputs().end(), same));
      updated[forward_.parameter_models[p]] = true;
    }
    for (const auto& [model, yes] : updated) {
      const size_t count = ++messages_[model];
      compute.messages.push_back(ActorName(model) + "." + MessageName(count));
    }
    Finish(graph, part, /*with_mask=*/!drop_last_, compute);
    train_.push_back(std::move(compute));
  }

  std::string GradientName(size_t parameter) const {
    return forward_.parameters[parameter].name + "_grad";
  }

  static std::string MessageName(size_t count) {
    return count == 1 ? kMessage : kMessage + std::to_string(count);
  }

  // Padded rows always may occur: the last batch of an evaluation is never dropped.
  void BuildEvalGraph() {
    eval_.name = kEvalGraph;
    Graph graph = evaluation_.graph;
    eval_.metrics = AddMetricOutputs(graph, evaluation_.metrics);
    for (size_t m = 0; m < module_.methods.size(); ++m) {
      if (messages_[m] == 0) continue;  // its parameters stay as they are
      const l2::Form& update =
          module_.methods.size() == 1 ? updates_.variants[0].update : module_.methods[m].update;
      if (const l2::Form* form = l2::EvaluationUpdate(update)) {
        graph = ReadEvaluated(graph, *form, m);
      }
    }
    NameValues(graph);
    GraphPart part;
    part.outputs = OutputsOf(graph, eval_.metrics);
    Finish(graph, part, /*with_mask=*/true, eval_);
  }

  // The graph with each parameter replaced by what the update has evaluation read.
  Graph ReadEvaluated(const Graph& from, const l2::Form& form, size_t model) {
    const l2::UpdateEntry& entry = *l2::FindUpdate(form.name);
    const l2::UpdatePlace place{.role_owners = updates_.role_owners};
    Graph to;
    std::map<std::string, NodeId> evaluated;
    const NodeId step = to.AddInput(updates_.steps[model], DType::kI64, {});
    evaluated[updates_.steps[model]] = step;  // where random numbers read it, too
    state_read_[updates_.steps[model]] = model;
    const NodeId completed = to.Cast(step, DType::kF64);
    for (const l2::Parameter& p : ParametersOf(forward_, model)) {
      l2::EvaluatedParameter in;
      in.graph = &to;
      in.parameter = to.AddInput(p.name, DType::kF32, p.shape);
      for (const std::string& role : entry.state(form)) {
        const std::string name = l2::StateName(p.name, form, role, place);
        in.state.push_back(to.AddInput(name, DType::kF32, p.shape));
        state_read_[name] = model;
      }
      in.completed = completed;
      evaluated[p.name] = entry.evaluated(form, in);
    }
    std::vector<NodeId> ids;
    for (const tensor::Node& node : from.nodes()) {
      const auto it = evaluated.find(node.name);
      if (node.op == Op::kInput && it != evaluated.end()) {
        ids.push_back(it->second);
        continue;
      }
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(ids[input]);
      const std::string name = to.Find(node.name) ? std::string() : node.name;
      ids.push_back(node.op == Op::kInput
                        ? to.AddInput(node.name, node.dtype, node.shape, node.span)
                        : to.Add(node.op, std::move(inputs), node.attr, name, node.span));
    }
    for (const tensor::Output& output : from.outputs()) {
      to.AddOutput(output.name, ids[output.node]);
    }
    return to;
  }

  // Ids are looked up by name: differentiation may have changed them.
  void Finish(const Graph& graph, GraphPart& part, bool with_mask, Compute& compute) const {
    std::vector<bool> needed(graph.size());
    for (const tensor::Output& output : part.outputs) needed[output.node] = true;
    for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
      if (!needed[id]) continue;
      for (NodeId input : graph.node(id).inputs) needed[input] = true;
    }
    auto find = [&](NodeId node) { return *graph.Find(forward_.graph.node(node).name); };
    for (const auto& field : forward_.fields) {
      if (needed[find(field.node)]) compute.args.push_back(field.node);
    }
    if (with_mask) compute.args.push_back(forward_.mask);
    for (NodeId arg : compute.args) part.arguments.push_back(find(arg));
    if (!with_mask) part.ones = find(forward_.mask);
    std::set<size_t> models;
    for (size_t p = 0; p < forward_.parameters.size(); ++p) {
      const NodeId state = find(forward_.parameter_nodes[p]);
      part.state.push_back(state);
      if (needed[state]) models.insert(forward_.parameter_models[p]);
    }
    std::map<std::string, size_t> read = state_read_;
    read[updates_.steps[forward_.clock]] = forward_.clock;
    for (const auto& [name, model] : read) {
      const auto state = graph.Find(name);
      if (!state || graph.node(*state).op != Op::kInput || !needed[*state]) continue;
      part.state.push_back(*state);
      models.insert(model);
    }
    compute.models.assign(models.begin(), models.end());
    compute.graph = Extract(graph, part);
  }

  // The fields that training loads, then the mask.
  std::vector<NodeId> TrainInputs() const {
    std::vector<NodeId> inputs;
    for (const auto& field : forward_.fields) inputs.push_back(field.node);
    if (!drop_last_) inputs.push_back(forward_.mask);
    return inputs;
  }

  bool PlaceAll() {
    StepDemand demand;
    for (const Compute& compute : train_) {
      demand.model_flops += CountFlops(compute.graph);
      demand.activation_bytes = std::max(demand.activation_bytes, PeakBytes(compute.graph));
    }
    const auto computing =
        std::count_if(options_.system.nodes.begin(), options_.system.nodes.end(),
                      [](const SystemNode& node) { return node.kind == NodeKind::kCompute; });
    if (forward_.turns.size() == 1 && computing > 1) MeasureShares(computing, demand);
    if (forward_.turns.size() > 1) {
      demand.why_beside_state =
          "each turn of the goal reads the state as the turn before leaves it";
    }
    for (const auto& variants : updates_.graphs) {
      demand.update_flops += CountFlops(variants.front().graph);
    }
    for (NodeId id : TrainInputs()) {
      const tensor::Node& node = forward_.graph.node(id);
      demand.batch_bytes += static_cast<double>(ByteSize(node.dtype, node.shape));
    }
    for (const l2::Parameter& p : forward_.parameters) {
      const auto bytes = static_cast<double>(ByteSize(DType::kF32, p.shape));
      demand.parameter_bytes += bytes;
      demand.largest_bytes = std::max(demand.largest_bytes, bytes);
      ++demand.parameters;
    }
    demand.gradient_bytes = demand.parameter_bytes;
    demand.state_bytes = demand.parameter_bytes + 8;  // and the step
    for (size_t m = 0; m < module_.methods.size(); ++m) {
      for (const l2::UpdateStateField& field : updates_.StateOf(m)) {
        demand.state_bytes += static_cast<double>(ByteSize(field.dtype, field.shape));
      }
    }
    if (!PlaceWithPins(demand)) return false;
    if (!result_.explanation.decisions.empty()) cost_ = result_.explanation.decisions[0].cost;
    return true;
  }

  // How the work can be shared by so many nodes.
  void MeasureShares(int64_t nodes, StepDemand& demand) const {
    const int64_t most = std::min<int64_t>(nodes, kMaxSharing);
    if (!kernels_.empty()) {
      // A kernel is for the layer as it stands, on a whole batch.
      for (int64_t parts = 2; parts <= most; ++parts) {
        demand.why_not_shared[parts] = "a kernel of its own computes " + kernels_[0].where;
      }
      return;
    }
    const auto share = [&](int64_t parts) {
      std::vector<RowShares> all;
      std::string why;
      for (const Compute& compute : train_) {
        auto shares = ShareRows(compute.graph, ArgsOf(compute), batch_, parts, &why);
        if (!shares) {
          demand.why_not_shared[parts] = why;
          return std::vector<RowShares>{};
        }
        all.push_back(*std::move(shares));
      }
      return all;
    };
    for (int64_t parts = 2; parts <= most; ++parts) {
      if (!share(parts).empty()) demand.shares.push_back(parts);
    }
    for (int64_t parts : {2, 4, 8}) {
      const std::vector<RowShares> shares = share(parts);
      if (shares.empty()) break;
      demand.micro_batches.push_back(parts);
      if (parts > 2) continue;
      // The layers are those of the first graph: variants of it have the same.
      demand.layers = ModelStages(shares[0], ReportedBy(train_[0])).work();
    }
  }

  // ---- The program --------------------------------------------------------------------------

  void Build() {
    program_.system = options_.system;
    BindData();
    for (size_t m = 0; m < module_.methods.size(); ++m) BuildActor(m);
    PipelineWriter writer(place_, program_);
    for (size_t v = 0; v < updates_.variants.size(); ++v) {
      const std::string name = "train" + VariantSuffix(v);
      std::vector<Computation> train;
      for (const Compute& compute : train_) {
        if (compute.variant == v) train.push_back(ComputationOf(compute));
      }
      Stage loader = Loader("load_" + name, "train", drop_last_);
      if (!SharesWork()) {
        writer.AddWhole(name, std::move(loader), train, place_.model[0], place_.resident[0]);
        continue;
      }
      const bool stages = !place_.stage_of.empty();
      const auto parts = stages ? place_.micro_batches : static_cast<int64_t>(place_.model.size());
      std::string none;
      const RowShares shares =
          *ShareRows(train[0].graph.graph, train[0].graph.args, batch_, parts, &none);
      if (stages) {
        writer.AddStages(name, std::move(loader), train[0], shares);
      } else {
        writer.AddShared(name, std::move(loader), train[0], shares);
      }
    }
    if (has_test_) {
      // A shared model is evaluated where its state lies.
      writer.AddWhole("test", Loader("load_test", "test", /*drop_last=*/false),
                      {ComputationOf(eval_)}, SharesWork() ? place_.update : place_.model[0],
                      SharesWork() ? place_.home : place_.resident[0]);
    }
    writer.NameReaders();
    BuildSchedule();
  }

  bool SharesWork() const { return place_.model.size() > 1; }

  Computation ComputationOf(const Compute& compute) const {
    Computation computation;
    computation.name = compute.name;
    computation.graph = {compute.graph, ArgsOf(compute)};
    computation.buffers = Staged(compute);
    for (size_t model : compute.models) {
      computation.windows.push_back({ActorName(model), kWindow});
    }
    computation.messages = compute.messages;
    for (const LayerKernel& kernel : kernels_) {
      if (!compute.graph.Find(kernel.layer)) continue;
      computation.kernels.emplace_back(kernel.layer, OfLayer(compute.graph, kernel));
    }
    computation.reported = ReportedBy(compute);
    return computation;
  }

  static std::set<std::string> ReportedBy(const Compute& compute) {
    std::set<std::string> reported;
    for (const MetricOutputs& metric : compute.metrics) {
      reported.insert({metric.numerator, metric.denominator});
    }
    return reported;
  }

  void BindData() {
    const l3::Data& data = *module_.spec.FindData(data_name_);
    BoundData bound;
    bound.name = data.name;
    for (const l3::Field& field : data.fields) {
      BoundField b;
      b.name = field.name;
      b.dtype = l3::ExampleDType(field.domain);
      b.shape = l3::ExampleShape(field.domain);
      b.classes = l2::ClassesOfField(module_.spec, data, field);
      if (b.classes > 0 && !tensor::IsFloat(b.dtype)) b.ignored = IgnoredOf(field.name);
      b.storage = place_.storage;
      b.path = info_->path;
      bound.fields.push_back(std::move(b));
    }
    program_.data.push_back(std::move(bound));
  }

  // The label of the field that counts nothing, where every loss that reads it says so.
  std::optional<int64_t> IgnoredOf(const std::string& field) const {
    std::optional<int64_t> ignored;
    bool first = true;
    support::Diagnostics none;
    const auto turns = l2::ResolveTurns(module_.spec, none);
    if (!turns) return std::nullopt;
    for (const l2::Turn& turn : *turns) {
      for (const l2::ObjectiveTerm& term : turn.terms) {
        if (!term.has_loss || term.target.kind != l3::Ref::Kind::kField ||
            term.target.owner != data_name_ || term.target.member != field) {
          continue;
        }
        const l2::Methods* methods = module_.FindMethods(term.predicted.owner);
        if (methods == nullptr) return std::nullopt;
        for (const l2::LossChoice& loss : methods->losses) {
          if (loss.term != term.choice) continue;
          const std::optional<int64_t> label = l2::IgnoredLabel(loss.form);
          if (first) ignored = label;
          if (ignored != label) return std::nullopt;
          first = false;
        }
      }
    }
    return ignored;
  }

  void BuildActor(size_t model) {
    const std::vector<l2::Parameter> parameters = ParametersOf(forward_, model);
    if (parameters.empty()) return;  // the goal does not depend on it
    const size_t messages = messages_[model];
    Actor actor;
    actor.name = ActorName(model);
    actor.node = place_.update;
    actor.home = place_.rests;
    Window window;
    window.name = kWindow;
    for (const l2::Parameter& p : parameters) {
      StateField field;
      field.name = p.name;
      field.shape = p.shape;
      field.init = InitOf(p);
      if (field.init == InitKind::kNormal) field.a = p.deviation;
      field.parameter = true;
      actor.state.push_back(std::move(field));
      window.fields.push_back(p.name);
    }
    // What nothing updates keeps its parameters alone.
    if (messages > 0) {
      for (const l2::UpdateStateField& s : updates_.StateOf(model)) {
        actor.state.push_back({s.name, s.dtype, s.shape, InitKind::kZeros, 0, false, {}});
      }
      actor.state.push_back(
          {updates_.steps[model], DType::kI64, {}, InitKind::kZeros, 0, false, {}});
      for (const StateField& field : actor.state) {
        if (ReadsState(field.name, model)) window.fields.push_back(field.name);
      }
    }
    actor.windows.push_back(std::move(window));

    for (size_t m = 0; m < messages; ++m) {
      // Of variants, each sends its own message; turns send messages that do the same.
      const size_t v = updates_.variants.size() > 1 ? m : 0;
      const Graph& graph = updates_.graphs[model][v].graph;
      Handler handler;
      handler.message = MessageName(m + 1);
      GraphPart part;
      for (const l2::Parameter& p : parameters) {
        if (updates_.variants[v].Freezes(p)) continue;
        handler.args.push_back(p.name + "_grad");
        part.arguments.push_back(*graph.Find(handler.args.back()));
      }
      for (const StateField& field : actor.state) {
        if (const auto node = graph.Find(field.name)) part.state.push_back(*node);
      }
      part.outputs = graph.outputs();
      Graph named = graph;
      NameValues(named, "_next", "step");
      handler.graph = Extract(named, part);
      actor.handlers.push_back(std::move(handler));
    }
    program_.actors.push_back(std::move(actor));
  }

  // Whether a graph reads a field of the model's state that is no parameter: its mean, or the steps
  // that random numbers are drawn by.
  bool ReadsState(const std::string& name, size_t model) const {
    const auto read = state_read_.find(name);
    if (read != state_read_.end() && read->second == model) return true;
    return forward_.step && model == forward_.clock && name == updates_.steps[model];
  }

  std::vector<StagedBuffer> Staged(const Compute& compute) const {
    std::vector<StagedBuffer> buffers;
    for (NodeId arg : compute.args) {
      const tensor::Node& node = forward_.graph.node(arg);
      std::string from(kValidField);
      for (const auto& field : forward_.fields) {
        if (field.node == arg) from = field.field;
      }
      buffers.push_back({node.name + compute.suffix, from, {node.dtype, node.shape}});
    }
    return buffers;
  }

  Stage Loader(const std::string& name, const std::string& split, bool drop_last) const {
    Stage stage;
    stage.name = name;
    stage.node = place_.loader;
    stage.samples = true;
    stage.sampling.kind = split == "train" ? SampleKind::kEpochShuffle : SampleKind::kSequential;
    stage.sampling.data = data_name_;
    stage.sampling.split = split;
    const l2::SamplePlan plan = l2::PlanOf(methods_.sample);
    const bool training = split == "train";
    l2::SamplePlan evaluated = plan;
    evaluated.shards = 1;
    stage.sampling.rows = l2::SamplesOf(training ? plan : evaluated, info_->rows.at(split));
    stage.sampling.window = plan.window;
    stage.sampling.stride = plan.stride;
    if (training) {
      stage.sampling.shards = plan.shards;
      stage.sampling.buffer = plan.buffer;
      stage.sampling.recent = plan.recent;
      if (plan.replay) stage.sampling.kind = SampleKind::kReplay;
    }
    stage.sampling.batch = batch_;
    stage.sampling.drop_last = drop_last;
    return stage;
  }

  std::vector<std::string> ArgsOf(const Compute& compute) const {
    std::vector<std::string> args;
    for (NodeId arg : compute.args) args.push_back(forward_.graph.node(arg).name);
    return args;
  }

  void BuildSchedule() {
    Schedule& schedule = program_.schedule;
    for (const Pipeline& pipeline : program_.pipelines) {
      schedule.pipelines.push_back({pipeline.name, {}});
    }
    for (const Actor& actor : program_.actors) {
      if (!actor.handlers.empty()) schedule.actors.push_back({actor.name, {}});
    }
    schedule.pipeline_depth = place_.pipeline_depth;
    schedule.seed = seed_;
    for (size_t i = 0; i < methods_.phases.size(); ++i) {
      const l2::Phase& p = methods_.phases[i];
      Phase phase;
      phase.name = p.name;
      phase.pipeline = "train" + VariantSuffix(updates_.variant_of_phase[i]);
      phase.epochs = p.epochs;
      phase.steps = p.steps;
      if (p.eval_every > 0 && has_test_) {
        phase.eval = "test";
        phase.eval_every = p.eval_every;
      }
      phase.checkpoint_every = p.checkpoint_every;
      schedule.phases.push_back(std::move(phase));
    }
    for (const Compute& compute : train_) {
      for (const MetricOutputs& m : compute.metrics) {
        const std::string graph =
            !SharesWork() ? compute.name : "reduce_train" + VariantSuffix(compute.variant);
        schedule.metrics.push_back({m.name, "train", graph, m.numerator, m.denominator, {}});
      }
    }
    if (!has_test_) return;
    for (const MetricOutputs& m : eval_.metrics) {
      schedule.metrics.push_back({m.name, "test", kEvalGraph, m.numerator, m.denominator, {}});
    }
  }

  const l2::Module& module_;
  const LowerOptions& options_;
  search::LoweringResult<Program> result_;
  search::CostVector cost_;
  l2::Methods methods_;
  int64_t batch_ = 1;
  bool drop_last_ = false;
  bool has_test_ = false;
  std::string data_name_;
  const DatasetInfo* info_ = nullptr;
  uint64_t seed_ = 0;
  int64_t total_steps_ = 1;
  l2::ForwardGraph forward_;                  // in training
  l2::ForwardGraph evaluation_;               // of the same fields and parameters
  std::map<std::string, size_t> state_read_;  // of the updates, by evaluation: whose it is
  UpdatePlan updates_;
  std::map<size_t, size_t> messages_;  // by model: how often a step updates it
  std::vector<Compute> train_;         // by turn
  Compute eval_;
  Placement place_;
  // What an annotation asks for.
  struct Pin {
    std::string node, where;
    Span span;
  };
  std::optional<Pin> data_pin_, model_pin_;
  std::vector<LayerKernel> kernels_;
  Program program_;
};

}  // namespace

search::LoweringResult<Program> Lower(const l2::Module& module, const LowerOptions& options) {
  return Lowering(module, options).Run();
}

}  // namespace l3c::l1
