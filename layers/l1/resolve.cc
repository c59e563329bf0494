// The second pass: bodies of graphs and handlers, and every reference that may point forward.
#include <algorithm>

#include "layers/l1/program_parser.h"
#include "layers/l1/tensor_body.h"

namespace l3c::l1 {

void ProgramParser::IndexForwards() {
  index_.emplace(program_);
  for (const Stage& stage : program_.stages) {
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind == StatementKind::kForward) forwards_[TargetOf(s)].emplace_back(&stage, &s);
    });
  }
  for (const Pipeline& pipeline : program_.pipelines) {
    const TensorGraph* graph = nullptr;
    for (const Reference& link : pipeline.links) {
      if (graph != nullptr) graph_before_.emplace(link.name, graph);
      if (const TensorGraph* here = index_->FindGraph(link.name)) graph = here;
    }
  }
}

void ProgramParser::IndexEnds() {
  for (const Pipeline& pipeline : program_.pipelines) {
    const TensorGraph* graph = nullptr;
    for (const Reference& link : pipeline.links) {
      if (const TensorGraph* here = index_->FindGraph(link.name)) graph = here;
    }
    if (graph == nullptr) continue;
    for (const tensor::Output& output : graph->graph.outputs()) {
      const tensor::Node& node = graph->graph.node(output.node);
      ended_.emplace(output.name, TensorType{node.dtype, node.shape});
    }
  }
}

// The type of an argument that has none of its own: of what is forwarded to it. `unit` is the
// name of a stage, a graph, or "actor.message".
std::optional<TensorType> ProgramParser::ForwardedType(const std::string& unit, size_t position,
                                                       const std::string& name) {
  std::optional<TensorType> type;
  for (const auto& [stage, forward] : forwards_[unit]) {
    if (position >= forward->buffers.size()) continue;
    const std::string& buffer = forward->buffers[position];
    const RawStage& raw = stages_[static_cast<size_t>(stage - program_.stages.data())];
    for (size_t p = 0; p < stage->params.size(); ++p) {
      const BufferParam& param = stage->params[p];
      if (param.name != buffer) continue;
      if (std::find(raw.untyped.begin(), raw.untyped.end(), p) != raw.untyped.end()) continue;
      return TensorType{param.dtype, param.shape};
    }
    ForEachStatement(stage->body, [&](const Statement& alloc) {
      if (alloc.kind == StatementKind::kAlloc && alloc.buffer == buffer) {
        type = TensorType{alloc.dtype, alloc.shape};
      }
    });
    if (type) return type;
  }
  // Outputs of a graph go by their names to the links behind it …
  const auto before = graph_before_.find(unit);
  if (before != graph_before_.end()) {
    const tensor::Graph& graph = before->second->graph;
    for (const tensor::Output& output : graph.outputs()) {
      if (output.name != name) continue;
      return TensorType{graph.node(output.node).dtype, graph.node(output.node).shape};
    }
    return std::nullopt;
  }
  // … and to a pipeline that continues.
  const auto end = ended_.find(name);
  return end == ended_.end() ? std::nullopt : std::optional(end->second);
}

bool ProgramParser::TypeParams() {
  bool any = false;
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = program_.stages[i];
    std::erase_if(stages_[i].untyped, [&](size_t p) {
      BufferParam& param = stage.params[p];
      const auto type = ForwardedType(stage.name, p, param.name);
      if (!type) return false;
      param.dtype = type->dtype;
      param.shape = type->shape;
      any = true;
      return true;
    });
  }
  return any;
}

void ProgramParser::ReportUntyped() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    for (size_t p : stages_[i].untyped) {
      const BufferParam& param = program_.stages[i].params[p];
      const std::string& region = program_.system.nodes[param.region].name;
      Error(param.span, "nothing that is forwarded here tells the type of '" + param.name + "'",
            Kind::kConsistency)
          .Fix("write " + param.name + ": buf<" + region + "> tensor(f32, [128, 784])");
    }
  }
}

bool ProgramParser::AddArguments(tensor::Graph& graph, const std::vector<RawArg>& args,
                                 const std::string& unit) {
  for (size_t i = 0; i < args.size(); ++i) {
    const RawArg& arg = args[i];
    auto type = arg.type;
    if (!type) type = ForwardedType(unit, i, arg.name.text);
    const auto before = graph_before_.find(unit);
    if (!type && before != graph_before_.end() && before->second->graph.outputs().empty()) {
      return false;  // its body was reported
    }
    if (!type) {
      Error(arg.name.span,
            "nothing that is forwarded here tells the type of '" + arg.name.text + "'",
            Kind::kConsistency)
          .Fix("write " + arg.name.text + ": tensor(f32, [128, 784])");
      return false;
    }
    graph.AddInput(arg.name.text, type->dtype, type->shape, arg.name.span);
  }
  return true;
}

bool ProgramParser::AddState(tensor::Graph& graph, const StateField& field,
                             const std::vector<RawArg>& args) {
  if (graph.Find(field.name)) {
    for (const RawArg& arg : args) {
      if (arg.name.text != field.name) continue;
      Error(arg.name.span, "argument '" + field.name + "' hides the state field of that name",
            Kind::kConsistency)
          .With({field.span, "the state field is declared here"});
      return false;
    }
    return true;  // read through two windows
  }
  graph.AddInput(field.name, field.dtype, field.shape, field.span);
  return true;
}

bool ProgramParser::ResolveReads(const std::vector<std::pair<Name, Name>>& reads) {
  bool ok = true;
  for (const auto& [actor_name, window_name] : reads) {
    const Actor* actor = index_->FindActor(actor_name.text);
    if (actor == nullptr) {
      ErrorUnknown("actor", actor_name, NamesOf(program_.actors), Kind::kSafety);
      ok = false;
    } else if (index_->FindWindow(*actor, window_name.text) == nullptr) {
      ErrorUnknown("window of actor '" + actor->name + "'", window_name, NamesOf(actor->windows),
                   Kind::kSafety);
      ok = false;
    }
  }
  return ok;
}

void ProgramParser::BuildGraphs() {
  for (size_t i = 0; i < graphs_.size(); ++i) {
    TensorGraph& graph = program_.graphs[i];
    const RawGraph& raw = graphs_[i];
    if (!AddArguments(graph.graph, raw.args, graph.name)) continue;
    bool ok = ResolveReads(raw.reads);
    if (!ok) continue;
    for (const auto& [actor_name, window_name] : raw.reads) {
      const Actor* actor = index_->FindActor(actor_name.text);
      for (const std::string& field : index_->FindWindow(*actor, window_name.text)->fields) {
        ok = AddState(graph.graph, *index_->FindState(*actor, field), raw.args) && ok;
      }
    }
    if (!ok) continue;
    TensorBody body(source(), diagnostics(), raw.body, graph.graph);
    body.ParseCompute(raw.outputs, graph.kernels);
    DropUnusedState(graph.graph, graph.args);
  }
}

void ProgramParser::BuildHandlers() {
  for (const RawHandler& raw : handlers_) {
    Actor& actor = program_.actors[raw.actor];
    Handler& handler = actor.handlers[raw.handler];
    if (!AddArguments(handler.graph, raw.args, actor.name + "." + handler.message)) continue;
    bool ok = true;
    for (const StateField& field : actor.state) {
      ok = AddState(handler.graph, field, raw.args) && ok;
    }
    if (!ok) continue;
    TensorBody body(source(), diagnostics(), raw.body, handler.graph);
    body.ParseHandler(actor);
    DropUnusedState(handler.graph, handler.args);
  }
}

// A graph's inputs are its arguments and the state that it uses, no more.
void ProgramParser::DropUnusedState(tensor::Graph& graph, const std::vector<std::string>& args) {
  std::vector<bool> used(graph.size());
  for (const tensor::Node& node : graph.nodes()) {
    for (tensor::NodeId input : node.inputs) used[input] = true;
  }
  for (const tensor::Output& output : graph.outputs()) used[output.node] = true;
  for (const std::string& arg : args) {
    if (const auto input = graph.Find(arg)) used[*input] = true;
  }
  tensor::Graph kept;
  std::vector<tensor::NodeId> ids(graph.size());
  for (tensor::NodeId id = 0; id < graph.size(); ++id) {
    const tensor::Node& node = graph.node(id);
    if (node.op == tensor::Op::kInput) {
      if (used[id]) ids[id] = kept.AddInput(node.name, node.dtype, node.shape, node.span);
      continue;
    }
    std::vector<tensor::NodeId> inputs;
    for (tensor::NodeId input : node.inputs) inputs.push_back(ids[input]);
    ids[id] = node.name.empty()
                  ? kept.AddLiteral(node.attr.scalar, node.dtype, node.span)
                  : kept.Add(node.op, std::move(inputs), node.attr, node.name, node.span);
  }
  for (const tensor::Output& output : graph.outputs()) {
    kept.AddOutput(output.name, ids[output.node]);
  }
  graph = std::move(kept);
}

// Stages, graphs and "actor.message".
std::vector<std::string> ProgramParser::Units() const {
  std::vector<std::string> names = NamesOf(program_.stages);
  for (const TensorGraph& graph : program_.graphs) names.push_back(graph.name);
  for (const Actor& actor : program_.actors) {
    for (const Handler& h : actor.handlers) names.push_back(actor.name + "." + h.message);
  }
  return names;
}

void ProgramParser::ResolveIn(const std::vector<Reference>& references, std::string_view what,
                              const std::vector<std::string>& candidates) {
  const std::set<std::string_view> known(candidates.begin(), candidates.end());
  for (const Reference& reference : references) {
    if (known.contains(reference.name)) continue;
    ErrorUnknown(what, {reference.name, reference.span}, candidates, Kind::kSafety);
  }
}

void ProgramParser::ReportTwice(const std::vector<Reference>& references, std::string_view list) {
  std::map<std::string_view, Span> seen;
  for (const Reference& reference : references) {
    const auto [first, fresh] = seen.emplace(reference.name, reference.span);
    if (fresh) continue;
    Error(reference.span, "'" + reference.name + "' stands twice in " + std::string(list),
          Kind::kConsistency)
        .With({first->second, "it is here already"});
  }
}

void ProgramParser::ResolveReferences() {
  std::vector<std::string> readers = NamesOf(program_.graphs);
  for (const Stage& stage : program_.stages) readers.push_back(stage.name);
  std::vector<Reference> references;
  for (const Actor& actor : program_.actors) {
    for (const Window& window : actor.windows) {
      ReportTwice(window.readers, "the readers of window '" + window.name + "'");
      references.insert(references.end(), window.readers.begin(), window.readers.end());
    }
  }
  ResolveIn(references, "stage or tensor graph", readers);
  for (const RawStage& stage : stages_) ResolveReads(stage.reads);
  references.clear();
  for (const Stage& stage : program_.stages) {
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind == StatementKind::kForward) references.push_back({TargetOf(s), s.span});
    });
  }
  const std::vector<std::string> units = Units();
  ResolveIn(references, "forward target", units);
  references.clear();
  for (const Pipeline& pipeline : program_.pipelines) {
    references.insert(references.end(), pipeline.links.begin(), pipeline.links.end());
  }
  ResolveIn(references, "stage, graph or message", units);
  const std::vector<std::string> pipelines = NamesOf(program_.pipelines);
  ReportTwice(program_.schedule.pipelines, "the pipelines of the schedule");
  ReportTwice(program_.schedule.actors, "the actors of the schedule");
  ResolveIn(program_.schedule.pipelines, "pipeline", pipelines);
  ResolveIn(program_.schedule.actors, "actor", NamesOf(program_.actors));
  references.clear();
  for (const Name& name : phase_pipelines_) references.push_back({name.text, name.span});
  ResolveIn(references, "pipeline", pipelines);
  ResolveMetrics();
}

void ProgramParser::ResolveMetrics() {
  for (const auto& [graph_name, numerator, denominator] : metrics_) {
    const TensorGraph* graph = index_->FindGraph(graph_name.text);
    if (graph == nullptr) {
      ErrorUnknown("tensor graph", graph_name, NamesOf(program_.graphs), Kind::kSafety);
      continue;
    }
    std::vector<std::string> outputs;
    for (const tensor::Output& output : graph->graph.outputs()) outputs.push_back(output.name);
    if (outputs.empty()) continue;  // its body was reported
    for (const Name& name : {numerator, denominator}) {
      if (std::find(outputs.begin(), outputs.end(), name.text) == outputs.end()) {
        ErrorUnknown("output", name, outputs, Kind::kSafety)
            .With({graph->span, "tensor graph '" + graph->name + "' is declared here"});
      }
    }
  }
}

}  // namespace l3c::l1
