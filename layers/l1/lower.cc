#include "layers/l1/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "layers/l1/graph_part.h"
#include "layers/l1/naming.h"
#include "layers/l1/place.h"
#include "layers/l2/expand.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/updates.h"
#include "layers/tensor/differentiate.h"

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

// Arithmetic of a graph: a multiply-add counts two, another elementwise op one.
double CountFlops(const Graph& derived) {
  const Graph graph = tensor::ExpandDerived(derived);
  double flops = 0;
  for (const tensor::Node& node : graph.nodes()) {
    const double elements = static_cast<double>(tensor::NumElements(node.shape));
    switch (tensor::Definition(node.op).op_class) {
      case tensor::OpClass::kElementwise:
      case tensor::OpClass::kIndexing:
        flops += elements;
        break;
      case tensor::OpClass::kReduction:
        flops += static_cast<double>(tensor::NumElements(graph.node(node.inputs[0]).shape));
        break;
      case tensor::OpClass::kContraction:
        flops += 2 * elements * static_cast<double>(graph.node(node.inputs[0]).shape.back());
        break;
      case tensor::OpClass::kLeaf:
      case tensor::OpClass::kMovement:
        break;
    }
  }
  return flops;
}

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

  // Expands the method into graphs and measures their work.
  bool Prepare() {
    result_.explanation.lowering = "l2->l1";
    if (module_.methods.size() != 1) {
      return Fail("there are methods for " + std::to_string(module_.methods.size()) + " models",
                  "write methods for exactly one model");
    }
    methods_ = module_.methods.front();
    const support::Hints* const all_hints[] = {&module_.spec.hints, &methods_.hints};
    for (const support::Hints* hints : all_hints) {
      for (const auto& [where, list] : *hints) {
        for (const support::EscapeHatch& hatch : list) {
          if (hatch.layer == "l2") continue;
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
    if (rows == info_->rows.end() || rows->second < (drop_last_ ? batch_ : 1)) {
      const int64_t count = rows == info_->rows.end() ? 0 : rows->second;
      return Fail("data '" + data_name_ + "' has " + std::to_string(count) +
                      " rows to train on, and a batch has " + std::to_string(batch_),
                  "make the batch smaller", methods_.sample.span);
    }
    has_test_ = info_->rows.contains("test") && info_->rows.at("test") > 0;

    const int64_t total_steps = l2::TotalSteps(methods_, rows->second);
    update_ = l2::ExpandUpdate(methods_.update, forward_.parameters, total_steps);
    BuildTrainGraph();
    BuildEvalGraph();
    return true;
  }

  void ApplyOverrides() {
    if (!options_.epochs && !options_.steps) return;
    l2::Phase phase = methods_.phases.empty() ? l2::Phase{"main"} : methods_.phases.front();
    phase.epochs = options_.steps ? 0 : *options_.epochs;
    phase.steps = options_.steps.value_or(0);
    methods_.phases = {phase};
  }

  // Everything is named before differentiation, so that a gradient is named after what it is the
  // gradient of; and derived ops are expanded before that, so that nothing is renamed in between.
  void BuildTrainGraph() {
    Graph graph = forward_.graph;
    std::vector<l2::MetricNodes> metrics;
    for (const l2::MetricNodes& metric : forward_.metrics) {
      if (metric.name == "loss") metrics.push_back(metric);
    }
    train_metrics_ = AddMetricOutputs(graph, metrics);
    std::vector<NodeId> ids;
    graph = tensor::ExpandDerived(graph, ids);
    NameValues(graph);
    std::vector<NodeId> parameters;
    for (NodeId node : forward_.parameter_nodes) parameters.push_back(ids[node]);
    const tensor::Gradients gradients =
        tensor::Differentiate(graph, ids[forward_.loss], parameters);
    NameValues(graph);
    GraphPart part = PartOf(graph);
    part.outputs = OutputsOf(graph, train_metrics_);
    for (size_t i = 0; i < forward_.parameters.size(); ++i) {
      part.outputs.push_back({forward_.parameters[i].name + "_grad", gradients.nodes[i]});
    }
    train_graph_ = Extract(graph, part);
  }

  // Padded rows always may occur: the last batch of an evaluation is never dropped.
  void BuildEvalGraph() {
    Graph graph = evaluation_.graph;
    eval_metrics_ = AddMetricOutputs(graph, evaluation_.metrics);
    if (const l2::Form* form = l2::EvaluationUpdate(methods_.update)) {
      graph = ReadEvaluated(graph, *form);
    }
    NameValues(graph);
    GraphPart part = PartOf(graph);
    part.outputs = OutputsOf(graph, eval_metrics_);
    part.ones.reset();
    part.arguments = InputsOf(graph, /*with_mask=*/true);
    eval_graph_ = Extract(graph, part);
  }

  // The graph with each parameter replaced by what the update has evaluation read.
  Graph ReadEvaluated(const Graph& from, const l2::Form& form) {
    const l2::UpdateEntry& entry = *l2::FindUpdate(form.name);
    Graph to;
    std::vector<NodeId> ids;
    std::map<std::string, NodeId> evaluated;
    std::map<std::string, const l2::Parameter*> parameters;
    for (const l2::Parameter& p : forward_.parameters) parameters[p.name] = &p;
    const NodeId step = to.AddInput("step", DType::kI64, {});
    const NodeId completed = to.Cast(step, DType::kF64);
    for (const l2::Parameter& p : forward_.parameters) {
      l2::EvaluatedParameter in;
      in.graph = &to;
      in.parameter = to.AddInput(p.name, DType::kF32, p.shape);
      for (const std::string& role : entry.state(form)) {
        const std::string name = p.name + "_" + role;
        in.state.push_back(to.AddInput(name, DType::kF32, p.shape));
        evaluation_state_.push_back(name);
      }
      in.completed = completed;
      evaluated[p.name] = entry.evaluated(form, in);
    }
    evaluation_state_.push_back("step");
    for (const tensor::Node& node : from.nodes()) {
      if (const auto it = evaluated.find(node.name);
          node.op == Op::kInput && it != evaluated.end()) {
        ids.push_back(it->second);
        continue;
      }
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(ids[input]);
      ids.push_back(node.op == Op::kInput
                        ? to.AddInput(node.name, node.dtype, node.shape, node.span)
                        : to.Add(node.op, std::move(inputs), node.attr,
                                 to.Find(node.name) ? std::string() : node.name, node.span));
    }
    for (const tensor::Output& output : from.outputs()) {
      to.AddOutput(output.name, ids[output.node]);
    }
    return to;
  }

  // Ids are looked up by name: differentiation may have changed them.
  std::vector<NodeId> InputsOf(const Graph& graph, bool with_mask) const {
    std::vector<NodeId> inputs;
    for (const auto& field : forward_.fields) {
      inputs.push_back(*graph.Find(forward_.graph.node(field.node).name));
    }
    if (with_mask) inputs.push_back(*graph.Find(MaskName()));
    return inputs;
  }

  GraphPart PartOf(const Graph& graph) const {
    GraphPart part;
    part.arguments = InputsOf(graph, !drop_last_);
    if (drop_last_) part.ones = graph.Find(MaskName());
    for (const l2::Parameter& p : forward_.parameters) part.state.push_back(*graph.Find(p.name));
    for (const std::string& name : StateRead()) {
      if (const auto node = graph.Find(name)) part.state.push_back(*node);
    }
    return part;
  }

  // State besides the parameters that the graphs read.
  std::vector<std::string> StateRead() const {
    std::vector<std::string> names = evaluation_state_;
    if (forward_.step && std::find(names.begin(), names.end(), "step") == names.end()) {
      names.push_back("step");
    }
    return names;
  }

  const std::string& MaskName() const { return forward_.graph.node(forward_.mask).name; }

  bool PlaceAll() {
    StepDemand demand;
    demand.model_flops = CountFlops(train_graph_);
    demand.update_flops = CountFlops(update_.graph);
    for (NodeId id : InputsOf(forward_.graph, /*with_mask=*/!drop_last_)) {
      const tensor::Node& node = forward_.graph.node(id);
      demand.batch_bytes += static_cast<double>(ByteSize(node.dtype, node.shape));
    }
    for (const l2::Parameter& p : forward_.parameters) {
      demand.parameter_bytes += static_cast<double>(ByteSize(DType::kF32, p.shape));
    }
    demand.gradient_bytes = demand.parameter_bytes;
    demand.state_bytes = demand.parameter_bytes + 8;  // and the step
    for (const l2::UpdateStateField& field : update_.state) {
      demand.state_bytes += static_cast<double>(ByteSize(field.dtype, field.shape));
    }
    PlacementResult placed =
        Place(options_.system, demand, options_.isas, options_.pipeline_depth, options_.search);
    result_.explanation = std::move(placed.explanation);
    result_.failure = std::move(placed.failure);
    if (!placed.placement) return false;
    place_ = *placed.placement;
    if (!result_.explanation.decisions.empty()) cost_ = result_.explanation.decisions[0].cost;
    return true;
  }

  // ---- The program --------------------------------------------------------------------------

  void Build() {
    program_.system = options_.system;
    BindData();
    BuildActor();
    program_.stages.push_back(Loader("load_train", "train", kTrainGraph, drop_last_));
    if (place_.staging != place_.resident) {
      program_.stages.push_back(Transfer("transfer_train", program_.stages.back(), kTrainGraph));
    }
    AddGraph(kTrainGraph, train_graph_, InputsOf(forward_.graph, !drop_last_));
    AddPipeline("train", "load_train", "transfer_train", kTrainGraph);
    program_.pipelines.back().links.push_back({std::string(kActor) + "." + kMessage, {}});
    if (has_test_) {
      program_.stages.push_back(Loader("load_test", "test", kEvalGraph, /*drop_last=*/false));
      if (place_.staging != place_.resident) {
        program_.stages.push_back(Transfer("transfer_test", program_.stages.back(), kEvalGraph));
      }
      AddGraph(kEvalGraph, eval_graph_, InputsOf(forward_.graph, /*with_mask=*/true));
      AddPipeline("test", "load_test", "transfer_test", kEvalGraph);
    }
    BuildSchedule();
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
      b.classes = ClassesOf(field.name);
      b.storage = place_.storage;
      b.path = info_->path;
      bound.fields.push_back(std::move(b));
    }
    program_.data.push_back(std::move(bound));
  }

  // A field of integers that a divergence compares with a distribution holds its classes.
  int64_t ClassesOf(const std::string& field) const {
    const l3::Domain& domain = module_.spec.FindData(data_name_)->FindField(field)->domain;
    if (tensor::IsFloat(l3::ExampleDType(domain))) return 0;
    for (const l3::Loss& loss : module_.spec.losses) {
      for (const l3::Term& term : loss.terms) {
        if (term.kind != l3::LossKind::kDivergence || term.reads.size() != 2) continue;
        const l3::Ref& target = term.reads[1];
        if (target.kind != l3::Ref::Kind::kField || target.owner != data_name_ ||
            target.member != field) {
          continue;
        }
        const l3::Domain* predicted = module_.spec.DomainOf(term.reads[0]);
        if (predicted != nullptr) return l2::ClassesOf(*predicted);
      }
    }
    return 0;
  }

  void BuildActor() {
    Actor actor;
    actor.name = kActor;
    actor.node = place_.update;
    Window window;
    window.name = kWindow;
    for (const l2::Parameter& p : forward_.parameters) {
      StateField field;
      field.name = p.name;
      field.shape = p.shape;
      field.init = InitOf(p);
      if (field.init == InitKind::kNormal) field.a = p.deviation;
      field.parameter = true;
      actor.state.push_back(std::move(field));
      window.fields.push_back(p.name);
    }
    for (const l2::UpdateStateField& s : update_.state) {
      actor.state.push_back({s.name, s.dtype, s.shape, InitKind::kZeros, 0, false, {}});
    }
    actor.state.push_back({"step", DType::kI64, {}, InitKind::kZeros, 0, false, {}});
    for (const std::string& name : StateRead()) window.fields.push_back(name);
    window.readers.push_back({kTrainGraph, {}});
    if (has_test_) window.readers.push_back({kEvalGraph, {}});
    actor.windows.push_back(std::move(window));

    Handler handler;
    handler.message = kMessage;
    GraphPart part;
    for (const l2::Parameter& p : forward_.parameters) {
      handler.args.push_back(p.name + "_grad");
      part.arguments.push_back(*update_.graph.Find(handler.args.back()));
    }
    for (const StateField& field : actor.state) {
      if (const auto node = update_.graph.Find(field.name)) part.state.push_back(*node);
    }
    part.outputs = update_.graph.outputs();
    Graph named = update_.graph;
    NameValues(named, "_next", "step");
    handler.graph = Extract(named, part);
    actor.handlers.push_back(std::move(handler));
    program_.actors.push_back(std::move(actor));
  }

  // A buffer that a stage hands on: its name, its type, and the field it is read from.
  struct StagedBuffer {
    std::string name;
    std::string field;
    DType dtype;
    tensor::Shape shape;
  };

  std::vector<StagedBuffer> Staged(bool with_mask) const {
    std::vector<StagedBuffer> buffers;
    for (const auto& field : forward_.fields) {
      const tensor::Node& node = forward_.graph.node(field.node);
      buffers.push_back({node.name, field.field, node.dtype, node.shape});
    }
    if (with_mask) {
      const tensor::Node& node = forward_.graph.node(forward_.mask);
      buffers.push_back({node.name, std::string(kValidField), node.dtype, node.shape});
    }
    return buffers;
  }

  Stage Loader(const std::string& name, const std::string& split, const std::string& graph,
               bool drop_last) const {
    Stage stage;
    stage.name = name;
    stage.node = place_.loader;
    stage.samples = true;
    stage.sampling.kind = split == "train" ? SampleKind::kEpochShuffle : SampleKind::kSequential;
    stage.sampling.data = data_name_;
    stage.sampling.split = split;
    stage.sampling.rows = info_->rows.at(split);
    stage.sampling.batch = batch_;
    stage.sampling.drop_last = drop_last;
    Statement forward;
    forward.kind = StatementKind::kForward;
    forward.target = place_.staging == place_.resident ? graph : "transfer_" + split;
    std::vector<Statement> reads;
    for (const StagedBuffer& buffer : Staged(!drop_last)) {
      stage.body.push_back(Alloc(buffer.name, place_.staging, buffer));
      Statement read;
      read.kind = StatementKind::kRead;
      read.buffer = buffer.name;
      read.data = data_name_;
      read.field = buffer.field;
      reads.push_back(std::move(read));
      forward.buffers.push_back(buffer.name);
    }
    stage.body.insert(stage.body.end(), reads.begin(), reads.end());
    stage.body.push_back(std::move(forward));
    return stage;
  }

  static Statement Alloc(const std::string& name, uint32_t region, const StagedBuffer& buffer) {
    Statement alloc;
    alloc.kind = StatementKind::kAlloc;
    alloc.buffer = name;
    alloc.region = region;
    alloc.dtype = buffer.dtype;
    alloc.shape = buffer.shape;
    return alloc;
  }

  // Copies what `loader` hands over into the memory that the model reads, and frees the original.
  Stage Transfer(const std::string& name, const Stage& loader, const std::string& graph) const {
    Stage stage;
    stage.name = name;
    stage.node = place_.loader;
    Statement forward;
    forward.kind = StatementKind::kForward;
    forward.target = graph;
    std::vector<Statement> copies, drops;
    for (const StagedBuffer& buffer : Staged(!loader.sampling.drop_last)) {
      const std::string resident = buffer.name + "_resident";
      stage.params.push_back({buffer.name, place_.staging, buffer.dtype, buffer.shape, {}});
      stage.body.push_back(Alloc(resident, place_.resident, buffer));
      Statement copy;
      copy.kind = StatementKind::kCopy;
      copy.buffer = resident;
      copy.source = buffer.name;
      copies.push_back(std::move(copy));
      Statement drop;
      drop.kind = StatementKind::kDrop;
      drop.buffer = buffer.name;
      drops.push_back(std::move(drop));
      forward.buffers.push_back(resident);
    }
    stage.body.insert(stage.body.end(), copies.begin(), copies.end());
    stage.body.insert(stage.body.end(), drops.begin(), drops.end());
    stage.body.push_back(std::move(forward));
    return stage;
  }

  void AddGraph(const std::string& name, const Graph& graph, const std::vector<NodeId>& args) {
    TensorGraph tensor_graph;
    tensor_graph.name = name;
    tensor_graph.node = place_.model;
    tensor_graph.reads = {{kActor, kWindow}};
    for (NodeId arg : args) tensor_graph.args.push_back(forward_.graph.node(arg).name);
    tensor_graph.graph = graph;
    program_.graphs.push_back(std::move(tensor_graph));
  }

  void AddPipeline(const std::string& name, const std::string& loader, const std::string& transfer,
                   const std::string& graph) {
    Pipeline pipeline;
    pipeline.name = name;
    pipeline.links = {{loader, {}}};
    if (place_.staging != place_.resident) pipeline.links.push_back({transfer, {}});
    pipeline.links.push_back({graph, {}});
    program_.pipelines.push_back(std::move(pipeline));
  }

  void BuildSchedule() {
    Schedule& schedule = program_.schedule;
    for (const Pipeline& pipeline : program_.pipelines) {
      schedule.pipelines.push_back({pipeline.name, {}});
    }
    schedule.actors.push_back({kActor, {}});
    schedule.pipeline_depth = place_.pipeline_depth;
    schedule.seed = seed_;
    for (const l2::Phase& p : methods_.phases) {
      Phase phase;
      phase.name = p.name;
      phase.pipeline = "train";
      phase.epochs = p.epochs;
      phase.steps = p.steps;
      if (p.eval_every > 0 && has_test_) {
        phase.eval = "test";
        phase.eval_every = p.eval_every;
      }
      phase.checkpoint_every = p.checkpoint_every;
      schedule.phases.push_back(std::move(phase));
    }
    for (const MetricOutputs& m : train_metrics_) {
      schedule.metrics.push_back({m.name, "train", kTrainGraph, m.numerator, m.denominator, {}});
    }
    if (!has_test_) return;
    for (const MetricOutputs& m : eval_metrics_) {
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
  l2::ForwardGraph forward_;     // in training
  l2::ForwardGraph evaluation_;  // of the same fields and parameters
  std::vector<std::string> evaluation_state_;  // what the update has evaluation read
  l2::UpdateGraph update_;
  Graph train_graph_;
  Graph eval_graph_;
  std::vector<MetricOutputs> train_metrics_;
  std::vector<MetricOutputs> eval_metrics_;
  Placement place_;
  Program program_;
};

}  // namespace

search::LoweringResult<Program> Lower(const l2::Module& module, const LowerOptions& options) {
  return Lowering(module, options).Run();
}

}  // namespace l3c::l1
