#include "layers/l1/placed_program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "layers/l1/graph_part.h"
#include "layers/l1/naming.h"
#include "layers/l1/pipeline_writer.h"
#include "layers/l1/row_shares.h"
#include "layers/l2/inputs.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"

namespace l3c::l1 {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

namespace {

constexpr char kWindow[] = "weights";

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

class ProgramBuilder {
 public:
  ProgramBuilder(const Training& training, const System& system,
                 const std::vector<LayerKernel>& kernels, const Placement& place)
      : t_(training), system_(system), kernels_(kernels), place_(place) {}

  Program Build() {
    program_.system = system_;
    BindData();
    const size_t copies = place_.replicated ? place_.model.size() : 1;
    for (size_t m = 0; m < t_.module->methods.size(); ++m) {
      for (size_t copy = 0; copy < copies; ++copy) BuildActor(m, copy);
    }
    PipelineWriter writer(place_, program_);
    for (size_t v = 0; v < t_.updates.variants.size(); ++v) {
      const std::string name = "train" + VariantSuffix(v);
      std::vector<Computation> train;
      for (const Compute& compute : t_.train) {
        if (compute.variant == v) train.push_back(ComputationOf(compute));
      }
      Stage loader = Loader("load_" + name, "train", t_.drop_last);
      if (!SharesWork()) {
        writer.AddWhole(name, std::move(loader), train, place_.model[0], place_.resident[0]);
        continue;
      }
      const bool stages = !place_.stage_of.empty();
      const auto parts = stages ? place_.micro_batches : static_cast<int64_t>(place_.model.size());
      std::string none;
      const RowShares shares =
          *ShareRows(train[0].graph.graph, train[0].graph.args, t_.batch, parts, &none);
      if (stages) {
        writer.AddStages(name, std::move(loader), train[0], shares);
      } else if (place_.replicated) {
        writer.AddRing(name, std::move(loader), train[0], shares);
      } else {
        writer.AddShared(name, std::move(loader), train[0], shares);
      }
    }
    if (t_.has_test) {
      // A shared model is evaluated where its state lies.
      writer.AddWhole("test", Loader("load_test", "test", /*drop_last=*/false),
                      {ComputationOf(t_.eval)}, SharesWork() ? place_.update : place_.model[0],
                      SharesWork() ? MemoryOf(system_, place_.update) : place_.resident[0]);
    }
    writer.NameReaders();
    BuildSchedule();
    return std::move(program_);
  }

 private:
  bool SharesWork() const { return place_.model.size() > 1; }

  Computation ComputationOf(const Compute& compute) const {
    Computation computation;
    computation.name = compute.name;
    computation.graph = {compute.graph, t_.ArgsOf(compute)};
    computation.buffers = Staged(compute);
    for (size_t model : compute.models) {
      computation.windows.push_back({t_.ActorName(model), kWindow});
    }
    computation.messages = compute.messages;
    for (const LayerKernel& kernel : kernels_) {
      if (!compute.graph.Find(kernel.layer)) continue;
      computation.kernels.emplace_back(kernel.layer, OfLayer(compute.graph, kernel));
    }
    computation.reported = compute.Reported();
    return computation;
  }

  void BindData() {
    const l3::Data& data = *t_.module->spec.FindData(t_.data_name);
    BoundData bound;
    bound.name = data.name;
    for (const l3::Field& field : data.fields) {
      BoundField b;
      b.name = field.name;
      b.dtype = l3::ExampleDType(field.domain);
      b.shape = l3::ExampleShape(field.domain);
      b.classes = l2::ClassesOfField(t_.module->spec, data, field);
      if (b.classes > 0 && !tensor::IsFloat(b.dtype)) b.ignored = IgnoredOf(field.name);
      b.storage = place_.storage;
      b.path = t_.info->path;
      bound.fields.push_back(std::move(b));
    }
    program_.data.push_back(std::move(bound));
  }

  // The label of the field that counts nothing, where every loss that reads it says so.
  std::optional<int64_t> IgnoredOf(const std::string& field) const {
    std::optional<int64_t> ignored;
    bool first = true;
    support::Diagnostics none;
    const auto turns = l2::ResolveTurns(t_.module->spec, none);
    if (!turns) return std::nullopt;
    for (const l2::Turn& turn : *turns) {
      for (const l2::ObjectiveTerm& term : turn.terms) {
        if (!term.has_loss || term.target.kind != l3::Ref::Kind::kField ||
            term.target.owner != t_.data_name || term.target.member != field) {
          continue;
        }
        const l2::Methods* methods = t_.module->FindMethods(term.predicted.owner);
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

  // `copy`: of a replicated state, the node's; what the first has is what counts and is evaluated.
  void BuildActor(size_t model, size_t copy) {
    const std::vector<l2::Parameter> parameters = ParametersOf(t_.forward, model);
    if (parameters.empty()) return;  // the goal does not depend on it
    const auto sent = t_.messages.find(model);
    const size_t messages = sent == t_.messages.end() ? 0 : sent->second;
    Actor actor;
    actor.name = ReplicaName(t_.ActorName(model), copy);
    actor.node = place_.replicated ? place_.model[copy] : place_.update;
    if (copy > 0) actor.replicates = t_.ActorName(model);
    actor.home = place_.rests;
    // A memory that the node reaches beside the one that it works in.
    if (!place_.rests && !place_.replicated && place_.home != MemoryOf(system_, place_.update)) {
      actor.home = place_.home;
    }
    Window window;
    window.name = kWindow;
    for (const l2::Parameter& p : parameters) {
      StateField field;
      field.name = p.name;
      field.shape = p.shape;
      field.init = InitOf(p);
      if (field.init == InitKind::kNormal) field.a = p.deviation;
      field.parameter = copy == 0;
      actor.state.push_back(std::move(field));
      window.fields.push_back(p.name);
    }
    // What nothing updates keeps its parameters alone.
    if (messages > 0) {
      for (const l2::UpdateStateField& s : t_.updates.StateOf(model)) {
        actor.state.push_back({s.name, s.dtype, s.shape, InitKind::kZeros, 0, false, {}});
      }
      actor.state.push_back(
          {t_.updates.steps[model], DType::kI64, {}, InitKind::kZeros, 0, false, {}});
      for (const StateField& field : actor.state) {
        if (t_.ReadsState(field.name, model)) window.fields.push_back(field.name);
      }
    }
    actor.windows.push_back(std::move(window));

    for (size_t m = 0; m < messages; ++m) {
      // Of variants, each sends its own message; turns send messages that do the same.
      const size_t v = t_.updates.variants.size() > 1 ? m : 0;
      const Graph& graph = t_.updates.graphs[model][v].graph;
      Handler handler;
      handler.message = MessageName(m + 1);
      GraphPart part;
      for (const l2::Parameter& p : parameters) {
        if (t_.updates.variants[v].Freezes(p)) continue;
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

  std::vector<StagedBuffer> Staged(const Compute& compute) const {
    std::vector<StagedBuffer> buffers;
    for (NodeId arg : compute.args) {
      const tensor::Node& node = t_.forward.graph.node(arg);
      std::string from(kValidField);
      for (const auto& field : t_.forward.fields) {
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
    stage.sampling.data = t_.data_name;
    stage.sampling.split = split;
    const l2::SamplePlan plan = l2::PlanOf(t_.methods.sample);
    const bool training = split == "train";
    l2::SamplePlan evaluated = plan;
    evaluated.shards = 1;
    stage.sampling.rows = l2::SamplesOf(training ? plan : evaluated, t_.info->rows.at(split));
    stage.sampling.window = plan.window;
    stage.sampling.stride = plan.stride;
    if (training) {
      stage.sampling.shards = plan.shards;
      stage.sampling.buffer = plan.buffer;
      stage.sampling.recent = plan.recent;
      if (plan.replay) stage.sampling.kind = SampleKind::kReplay;
    }
    stage.sampling.batch = t_.batch;
    stage.sampling.drop_last = drop_last;
    return stage;
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
    schedule.seed = t_.seed;
    for (size_t i = 0; i < t_.methods.phases.size(); ++i) {
      const l2::Phase& p = t_.methods.phases[i];
      Phase phase;
      phase.name = p.name;
      phase.pipeline = "train" + VariantSuffix(t_.updates.variant_of_phase[i]);
      phase.epochs = p.epochs;
      phase.steps = p.steps;
      if (p.eval_every > 0 && t_.has_test) {
        phase.eval = "test";
        phase.eval_every = p.eval_every;
      }
      phase.checkpoint_every = p.checkpoint_every;
      schedule.phases.push_back(std::move(phase));
    }
    for (const Compute& compute : t_.train) {
      for (const MetricOutputs& m : compute.metrics) {
        const std::string graph =
            !SharesWork() ? compute.name : "reduce_train" + VariantSuffix(compute.variant);
        schedule.metrics.push_back({m.name, "train", graph, m.numerator, m.denominator, {}});
      }
    }
    if (!t_.has_test) return;
    for (const MetricOutputs& m : t_.eval.metrics) {
      schedule.metrics.push_back({m.name, "test", kEvalGraph, m.numerator, m.denominator, {}});
    }
  }

  const Training& t_;
  const System& system_;
  const std::vector<LayerKernel>& kernels_;
  const Placement& place_;
  Program program_;
};

}  // namespace

Program PlacedProgram(const Training& training, const System& system,
                      const std::vector<LayerKernel>& kernels, const Placement& place) {
  return ProgramBuilder(training, system, kernels, place).Build();
}

}  // namespace l3c::l1
