#include "layers/l1/training_graphs.h"

#include <algorithm>
#include <utility>

#include "layers/l1/graph_part.h"
#include "layers/l1/naming.h"
#include "layers/l2/backward.h"
#include "layers/l2/updates.h"

namespace l3c::l1 {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

namespace {

constexpr char kMessage[] = "GradUpdate";
constexpr char kTrainGraph[] = "forward_backward";

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

class GraphBuilder {
 public:
  explicit GraphBuilder(Training& training) : t_(training) {}

  void Build() {
    for (size_t v = 0; v < t_.updates.variants.size(); ++v) {
      for (size_t t = 0; t < t_.forward.turns.size(); ++t) BuildTrainGraph(t, v);
    }
    BuildEvalGraph();
  }

 private:
  void BuildTrainGraph(size_t t, size_t v) {
    l2::TurnNodes turn = t_.forward.turns[t];
    std::erase_if(turn.parameters, [&](size_t p) {
      return t_.updates.variants[v].Freezes(t_.forward.parameters[p]);
    });
    Compute compute;
    compute.variant = v;
    compute.name =
        (t_.forward.turns.size() == 1 ? kTrainGraph : turn.name + "_step") + VariantSuffix(v);
    if (t > 0) compute.suffix = "_" + std::to_string(t + 1);
    for (const Compute& other : t_.train) {
      if (other.name == compute.name) compute.name += compute.suffix;
    }
    l2::ForwardGraph forward = t_.forward;
    compute.metrics = AddMetricOutputs(forward.graph, {t_.forward.metrics[turn.first_metric]});
    l2::BackwardGraph backward(forward, t, t_.seed, t_.total_steps * t_.forward.ticks);
    NameValues(backward.graph());
    std::map<size_t, std::vector<size_t>> by_model;
    for (size_t p : turn.parameters) by_model[t_.forward.parameter_models[p]].push_back(p);
    for (const auto& [model, own] : by_model) {
      const l2::Methods& methods = t_.module->methods[model];
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
      updated[t_.forward.parameter_models[p]] = true;
    }
    for (const auto& [model, yes] : updated) {
      const size_t count = ++t_.messages[model];
      compute.messages.push_back(t_.ActorName(model) + "." + MessageName(count));
    }
    Finish(graph, part, /*with_mask=*/!t_.drop_last, compute);
    t_.train.push_back(std::move(compute));
  }

  std::string GradientName(size_t parameter) const {
    return t_.forward.parameters[parameter].name + "_grad";
  }

  // Padded rows always may occur: the last batch of an evaluation is never dropped.
  void BuildEvalGraph() {
    t_.eval.name = kEvalGraph;
    Graph graph = t_.evaluation.graph;
    t_.eval.metrics = AddMetricOutputs(graph, t_.evaluation.metrics);
    for (size_t m = 0; m < t_.module->methods.size(); ++m) {
      if (t_.messages[m] == 0) continue;  // its parameters stay as they are
      const l2::Form& update = t_.module->methods.size() == 1 ? t_.updates.variants[0].update
                                                              : t_.module->methods[m].update;
      if (const l2::Form* form = l2::EvaluationUpdate(update)) {
        graph = ReadEvaluated(graph, *form, m);
      }
    }
    NameValues(graph);
    GraphPart part;
    part.outputs = OutputsOf(graph, t_.eval.metrics);
    Finish(graph, part, /*with_mask=*/true, t_.eval);
  }

  // The graph with each parameter replaced by what the update has evaluation read.
  Graph ReadEvaluated(const Graph& from, const l2::Form& form, size_t model) {
    const l2::UpdateEntry& entry = *l2::FindUpdate(form.name);
    const l2::UpdatePlace place{.role_owners = t_.updates.role_owners};
    Graph to;
    std::map<std::string, NodeId> evaluated;
    const NodeId step = to.AddInput(t_.updates.steps[model], DType::kI64, {});
    evaluated[t_.updates.steps[model]] = step;  // where random numbers read it, too
    t_.state_read[t_.updates.steps[model]] = model;
    const NodeId completed = to.Cast(step, DType::kF64);
    for (const l2::Parameter& p : ParametersOf(t_.forward, model)) {
      l2::EvaluatedParameter in;
      in.graph = &to;
      in.parameter = to.AddInput(p.name, DType::kF32, p.shape);
      for (const std::string& role : entry.state(form)) {
        const std::string name = l2::StateName(p.name, form, role, place);
        in.state.push_back(to.AddInput(name, DType::kF32, p.shape));
        t_.state_read[name] = model;
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
    auto find = [&](NodeId node) { return *graph.Find(t_.forward.graph.node(node).name); };
    for (const auto& field : t_.forward.fields) {
      if (needed[find(field.node)]) compute.args.push_back(field.node);
    }
    if (with_mask) compute.args.push_back(t_.forward.mask);
    for (NodeId arg : compute.args) part.arguments.push_back(find(arg));
    if (!with_mask) part.ones = find(t_.forward.mask);
    std::set<size_t> models;
    for (size_t p = 0; p < t_.forward.parameters.size(); ++p) {
      const NodeId state = find(t_.forward.parameter_nodes[p]);
      part.state.push_back(state);
      if (needed[state]) models.insert(t_.forward.parameter_models[p]);
    }
    std::map<std::string, size_t> read = t_.state_read;
    read[t_.updates.steps[t_.forward.clock]] = t_.forward.clock;
    for (const auto& [name, model] : read) {
      const auto state = graph.Find(name);
      if (!state || graph.node(*state).op != Op::kInput || !needed[*state]) continue;
      part.state.push_back(*state);
      models.insert(model);
    }
    compute.models.assign(models.begin(), models.end());
    compute.graph = Extract(graph, part);
  }

  Training& t_;
};

}  // namespace

std::set<std::string> Compute::Reported() const {
  std::set<std::string> reported;
  for (const MetricOutputs& metric : metrics) {
    reported.insert({metric.numerator, metric.denominator});
  }
  return reported;
}

std::string Training::ActorName(size_t model) const {
  return module->methods.size() == 1 ? kActor : module->methods[model].model + "_state";
}

std::vector<std::string> Training::ArgsOf(const Compute& compute) const {
  std::vector<std::string> args;
  for (NodeId arg : compute.args) args.push_back(forward.graph.node(arg).name);
  return args;
}

std::vector<NodeId> Training::TrainInputs() const {
  std::vector<NodeId> inputs;
  for (const auto& field : forward.fields) inputs.push_back(field.node);
  if (!drop_last) inputs.push_back(forward.mask);
  return inputs;
}

bool Training::ReadsState(const std::string& name, size_t model) const {
  const auto read = state_read.find(name);
  if (read != state_read.end() && read->second == model) return true;
  return forward.step && model == forward.clock && name == updates.steps[model];
}

std::string VariantSuffix(size_t variant) {
  return variant == 0 ? "" : "_" + std::to_string(variant + 1);
}

std::string MessageName(size_t count) {
  return count == 1 ? kMessage : kMessage + std::to_string(count);
}

void BuildGraphs(Training& training) { GraphBuilder(training).Build(); }

}  // namespace l3c::l1
