#include "layers/l1/pipeline_writer.h"

#include <algorithm>
#include <map>
#include <utility>

namespace l3c::l1 {

using tensor::Graph;
using tensor::NodeId;

std::string Numbered(const std::string& name, size_t number) {
  return name + "_" + std::to_string(number);
}

namespace {

void AddParam(Stage& stage, const std::string& name, uint32_t region, const TensorType& type) {
  stage.params.push_back({name, region, type.dtype, type.shape, {}});
}

TensorType TypeOf(const Graph& graph, const std::string& input) {
  const tensor::Node& node = graph.node(*graph.Find(input));
  return {node.dtype, node.shape};
}

bool Takes(const SharedGraph& graph, const std::string& arg) {
  return std::find(graph.args.begin(), graph.args.end(), arg) != graph.args.end();
}

// The inputs of a graph that are not handed to it: fields of state, in their order.
std::vector<std::string> StateRead(const SharedGraph& shared) {
  std::vector<std::string> fields;
  for (NodeId input : shared.graph.inputs()) {
    const std::string& name = shared.graph.node(input).name;
    if (!Takes(shared, name)) fields.push_back(name);
  }
  return fields;
}

}  // namespace

bool PipelineWriter::Reaches(uint32_t node, uint32_t memory) const {
  const std::vector<uint32_t> local = LocalMemories(program_.system, node);
  return std::find(local.begin(), local.end(), memory) != local.end();
}

void PipelineWriter::Begin(const std::string& name) {
  pipeline_ = {};
  pipeline_.name = name;
  at_.clear();
}

void PipelineWriter::AddStage(Stage stage) {
  pipeline_.links.push_back({stage.name, {}});
  program_.stages.push_back(std::move(stage));
}

void PipelineWriter::AddGraph(const std::string& name, const SharedGraph& shared, uint32_t node,
                              const std::vector<std::pair<std::string, std::string>>& windows,
                              bool travels) {
  TensorGraph graph;
  graph.name = name;
  graph.node = node;
  graph.args = shared.args;
  const std::vector<std::string> state = StateRead(shared);
  if (travels) {
    graph.args.insert(graph.args.end(), state.begin(), state.end());
  } else if (!state.empty()) {
    graph.reads = windows;
  }
  graph.graph = shared.graph;
  program_.graphs.push_back(std::move(graph));
  pipeline_.links.push_back({name, {}});
}

void PipelineWriter::AddMessages(const Computation& computation) {
  for (const std::string& message : computation.messages) pipeline_.links.push_back({message, {}});
}

Stage PipelineWriter::OnLoader(const std::string& name) const {
  Stage stage;
  stage.name = name;
  stage.node = place_.loader;
  return stage;
}

// ---- Whole --------------------------------------------------------------------------------------

void PipelineWriter::AddWhole(const std::string& name, Stage loader,
                              const std::vector<Computation>& graphs, uint32_t node,
                              uint32_t memory) {
  const bool travels = !Reaches(node, place_.home);
  const bool own_transfer = memory != place_.staging && place_.own_transfer;
  std::vector<std::string> receivers;
  for (const Computation& computation : graphs) {
    receivers.push_back(travels ? "carry_" + name : computation.name);
  }
  Begin(name);
  FillLoader(loader, graphs, receivers, memory, own_transfer ? "transfer_" + name : "");
  AddStage(std::move(loader));
  if (own_transfer) AddStage(Transfer("transfer_" + name, graphs, receivers, memory));
  if (travels) {
    const Computation& computation = graphs.front();
    std::vector<std::string> buffers;
    for (const StagedBuffer& buffer : computation.buffers) buffers.push_back(buffer.name);
    AddStage(CarryState("carry_" + name, computation.name, computation.graph, buffers,
                        computation.windows, memory));
  }
  for (const Computation& computation : graphs) {
    AddGraph(computation.name, computation.graph, node, computation.windows, travels);
    program_.graphs.back().kernels = computation.kernels;
    if (travels && !computation.messages.empty()) {
      AddStage(ReturnGradients("return_" + name, computation, memory));
    }
    AddMessages(computation);
  }
  program_.pipelines.push_back(std::move(pipeline_));
}

// A batch for each graph that reads it; the fields that several read are loaded once. Without a
// stage of its own to transfer batches, this one carries them to where the graphs work.
void PipelineWriter::FillLoader(Stage& stage, const std::vector<Computation>& graphs,
                                const std::vector<std::string>& receivers, uint32_t memory,
                                const std::string& transfer) const {
  StageBody body;
  const bool carries = transfer.empty() && memory != place_.staging;
  for (size_t g = 0; g < graphs.size(); ++g) {
    if (transfer.empty() || g == 0) body.Forward(transfer.empty() ? receivers[g] : transfer);
    for (const StagedBuffer& buffer : graphs[g].buffers) {
      body.Alloc(buffer.name, place_.staging, buffer.type);
      body.Read(buffer.name, stage.sampling.data, buffer.field);
      body.AddToForward(carries ? body.Carry(buffer.name, memory, buffer.type) : buffer.name);
    }
  }
  body.AppendTo(stage);
}

// Copies what the loader hands over into the memory that the graphs work in.
Stage PipelineWriter::Transfer(const std::string& name, const std::vector<Computation>& graphs,
                               const std::vector<std::string>& receivers, uint32_t memory) const {
  Stage stage = OnLoader(name);
  StageBody body;
  for (size_t g = 0; g < graphs.size(); ++g) {
    body.Forward(receivers[g]);
    for (const StagedBuffer& buffer : graphs[g].buffers) {
      AddParam(stage, buffer.name, place_.staging, buffer.type);
      body.AddToForward(body.Carry(buffer.name, memory, buffer.type));
    }
  }
  body.AppendTo(stage);
  return stage;
}

// Hands on what a graph takes, and beside it copies of the state that it reads.
Stage PipelineWriter::CarryState(const std::string& name, const std::string& to,
                                 const SharedGraph& graph, const std::vector<std::string>& buffers,
                                 const std::vector<std::pair<std::string, std::string>>& windows,
                                 uint32_t memory) const {
  Stage stage = OnLoader(name);
  stage.reads = windows;
  StageBody body;
  body.Forward(to);
  for (size_t i = 0; i < buffers.size(); ++i) {
    AddParam(stage, buffers[i], memory, TypeOf(graph.graph, graph.args[i]));
    body.AddToForward(buffers[i]);
  }
  for (const std::string& field : StateRead(graph)) {
    body.AddToForward(body.CopyTo(field, "_resident", memory, TypeOf(graph.graph, field)));
  }
  body.AppendTo(stage);
  return stage;
}

// Carries a graph's gradients to the actors, and sends them their messages.
Stage PipelineWriter::ReturnGradients(const std::string& name, const Computation& computation,
                                      uint32_t memory) const {
  Stage stage = OnLoader(name);
  StageBody body;
  for (const std::string& message : computation.messages) {
    body.Forward(message);
    const Handler& handler = *FindHandler(program_, message)->handler;
    for (const std::string& arg : handler.args) {
      const TensorType type = TypeOf(handler.graph, arg);
      AddParam(stage, arg, memory, type);
      body.AddToForward(body.Carry(arg, place_.home, type));
    }
  }
  body.AppendTo(stage);
  return stage;
}

// ---- A batch shared by several nodes ------------------------------------------------------------

void PipelineWriter::Gives(const SharedGraph& graph, uint32_t memory) {
  for (const tensor::Output& output : graph.graph.outputs()) at_[output.name] = memory;
}

void PipelineWriter::BeginShared(const std::string& name, Stage loader,
                                 const Computation& computation, const RowShares& shares) {
  Begin(name);
  FillLoader(loader, {computation}, {"cut_" + name}, place_.staging, "");
  AddStage(std::move(loader));
  AddGraph("cut_" + name, shares.cut, place_.loader, {}, false);
  Gives(shares.cut, place_.staging);
  AddStage(Scatter(name, computation, shares));
}

void PipelineWriter::AddShared(const std::string& name, Stage loader,
                               const Computation& computation, const RowShares& shares) {
  BeginShared(name, std::move(loader), computation, shares);
  for (size_t p = 0; p < place_.model.size(); ++p) {
    const std::string part = Numbered(computation.name, p);
    if (Travels(p)) {
      AddStage(CarryState(Numbered("carry_" + name, p), part, shares.parts[p], shares.parts[p].args,
                          computation.windows, place_.resident[p]));
    }
    AddGraph(part, shares.parts[p], place_.model[p], computation.windows, Travels(p));
    Gives(shares.parts[p], place_.resident[p]);
  }
  AddStage(Gather("gather_" + name, "reduce_" + name, shares.reduce, place_.home));
  AddGraph("reduce_" + name, shares.reduce, place_.update, computation.windows, false);
  AddMessages(computation);
  program_.pipelines.push_back(std::move(pipeline_));
}

// Hands each part its share of the batch, in its memory, and a copy of what all of them take.
Stage PipelineWriter::Scatter(const std::string& name, const Computation& computation,
                              const RowShares& shares) const {
  Stage stage = OnLoader("scatter_" + name);
  StageBody body;
  std::set<std::string> known;
  for (size_t p = 0; p < shares.parts.size(); ++p) {
    const SharedGraph& part = shares.parts[p];
    const SharedGraph& other = shares.parts[p == 0 ? 1 : 0];
    body.Forward(Travels(p) ? Numbered("carry_" + name, p) : Numbered(computation.name, p));
    for (const std::string& arg : part.args) {
      const TensorType type = TypeOf(part.graph, arg);
      const bool shared = Takes(other, arg);
      if (known.insert(arg).second) {
        AddParam(stage, arg, place_.staging, type);
        if (shared) body.Drop(arg);
      }
      const uint32_t memory = place_.resident[p];
      body.AddToForward(shared ? body.CopyTo(arg, "_" + std::to_string(p), memory, type)
                        : memory == place_.staging ? arg
                                                   : body.Carry(arg, memory, type));
    }
  }
  body.AppendTo(stage);
  return stage;
}

Stage PipelineWriter::Gather(const std::string& name, const std::string& to,
                             const SharedGraph& graph, uint32_t memory) const {
  Stage stage = OnLoader(name);
  StageBody body;
  body.Forward(to);
  for (const std::string& arg : graph.args) {
    const TensorType type = TypeOf(graph.graph, arg);
    AddParam(stage, arg, at_.at(arg), type);
    body.AddToForward(at_.at(arg) == memory ? arg : body.Carry(arg, memory, type));
  }
  body.AppendTo(stage);
  return stage;
}

// ---- Stages of a model --------------------------------------------------------------------------

void PipelineWriter::AddStages(const std::string& name, Stage loader,
                               const Computation& computation, const RowShares& shares) {
  const ModelStages model(shares, computation.reported);
  std::vector<std::vector<StageUnit>> parts;
  for (size_t p = 0; p < shares.parts.size(); ++p) {
    parts.push_back(model.Cut(p, place_.stage_of));
  }
  Begin(name);
  FillLoader(loader, {computation}, {"cut_" + name}, place_.staging, "");
  AddStage(std::move(loader));
  AddGraph("cut_" + name, shares.cut, place_.loader, {}, false);
  Gives(shares.cut, place_.staging);
  for (size_t s = 0; s < place_.model.size(); ++s) {
    if (Travels(s)) AddWeights(name, s, computation, parts[0]);
  }
  for (const bool backward : {false, true}) {
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const StageUnit& unit : parts[p]) {
        if (unit.backward != backward) continue;
        const std::string pass = (backward ? "backward_" : "forward_") + name;
        AddUnit(Numbered(Numbered(pass, unit.stage), p), unit, computation);
      }
    }
  }
  const std::vector<size_t> stage_of_sum = model.StagesOfSums(place_.stage_of);
  for (size_t s = 0; s < place_.model.size(); ++s) {
    std::vector<RowShares::Sum> sums;
    for (size_t i = 0; i < shares.sums.size(); ++i) {
      if (stage_of_sum[i] == s) sums.push_back(shares.sums[i]);
    }
    if (sums.empty()) continue;
    const SharedGraph sum = AddUp(shares, sums);
    AddGraph(Numbered("sum_" + name, s), sum, place_.model[s], {}, false);
    Gives(sum, place_.resident[s]);
  }
  AddStage(Gather("gather_" + name, "reduce_" + name, shares.rest, place_.home));
  AddGraph("reduce_" + name, shares.rest, place_.update, computation.windows, false);
  AddMessages(computation);
  program_.pipelines.push_back(std::move(pipeline_));
}

// The parameters of a stage in its memory, once for all parts of a batch: a graph that gives what
// it takes, so that any number of graphs can have it by name.
void PipelineWriter::AddWeights(const std::string& name, size_t stage,
                                const Computation& computation,
                                const std::vector<StageUnit>& units) {
  SharedGraph weights;
  for (const StageUnit& unit : units) {
    if (unit.stage != stage) continue;
    for (const std::string& field : StateRead(unit.graph)) {
      if (weights.graph.Find(field)) continue;
      const TensorType type = TypeOf(unit.graph.graph, field);
      const NodeId input = weights.graph.AddInput(field, type.dtype, type.shape);
      weights.graph.AddOutput(Numbered(field + "_at", stage), input);
    }
  }
  if (weights.graph.inputs().empty()) return;
  const std::string graph = Numbered("weights_" + name, stage);
  AddStage(CarryState(Numbered("carry_" + name, stage), graph, weights, {}, computation.windows,
                      place_.resident[stage]));
  AddGraph(graph, weights, place_.model[stage], computation.windows, true);
  Gives(weights, place_.resident[stage]);
}

SharedGraph PipelineWriter::WithWeights(const SharedGraph& graph, size_t stage) const {
  SharedGraph with = graph;
  for (const std::string& field : StateRead(graph)) {
    const std::string name = Numbered(field + "_at", stage);
    with.graph.Rename(*with.graph.Find(field), name);
    with.args.push_back(name);
  }
  return with;
}

void PipelineWriter::AddUnit(const std::string& name, const StageUnit& unit,
                             const Computation& computation) {
  const uint32_t memory = place_.resident[unit.stage];
  const SharedGraph graph = Travels(unit.stage) ? WithWeights(unit.graph, unit.stage) : unit.graph;
  const bool near = std::all_of(graph.args.begin(), graph.args.end(),
                                [&](const std::string& arg) { return at_.at(arg) == memory; });
  if (!near) AddStage(Gather("carry_" + name, name, graph, memory));
  AddGraph(name, graph, place_.model[unit.stage], computation.windows, false);
  Gives(graph, memory);
}

void PipelineWriter::NameReaders() {
  for (Actor& actor : program_.actors) {
    for (Window& window : actor.windows) {
      const auto reads = [&](const auto& unit) {
        const std::pair<std::string, std::string> read{actor.name, window.name};
        return std::find(unit.reads.begin(), unit.reads.end(), read) != unit.reads.end();
      };
      for (const TensorGraph& graph : program_.graphs) {
        if (reads(graph)) window.readers.push_back({graph.name, {}});
      }
      for (const Stage& stage : program_.stages) {
        if (reads(stage)) window.readers.push_back({stage.name, {}});
      }
    }
  }
}

}  // namespace l3c::l1
