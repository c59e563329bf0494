// The second pass: bodies of graphs and handlers, and every reference that may point forward.
#include <algorithm>

#include "layers/l1/program_parser.h"
#include "layers/l1/tensor_body.h"

namespace l3c::l1 {

// The type of an argument that has none of its own: of what is forwarded to it. `unit` is the
// name of a graph, or "actor.message".
std::optional<TensorType> ProgramParser::ForwardedType(const std::string& unit, size_t position,
                                                       const std::string& name) {
  for (const Stage& stage : program_.stages) {
    for (const Statement& s : stage.body) {
      if (s.kind != StatementKind::kForward || position >= s.buffers.size()) continue;
      if (s.target + (s.handler.empty() ? "" : "." + s.handler) != unit) continue;
      for (const BufferParam& param : stage.params) {
        if (param.name == s.buffers[position]) return TensorType{param.dtype, param.shape};
      }
      for (const Statement& alloc : stage.body) {
        if (alloc.kind == StatementKind::kAlloc && alloc.buffer == s.buffers[position]) {
          return TensorType{alloc.dtype, alloc.shape};
        }
      }
    }
  }
  for (const Pipeline& pipeline : program_.pipelines) {
    for (size_t i = 1; i < pipeline.links.size(); ++i) {
      if (pipeline.links[i].name != unit) continue;
      const TensorGraph* graph = FindGraph(program_, pipeline.links[i - 1].name);
      if (graph == nullptr) continue;
      for (const tensor::Output& output : graph->graph.outputs()) {
        if (output.name != name) continue;
        const tensor::Node& node = graph->graph.node(output.node);
        return TensorType{node.dtype, node.shape};
      }
    }
  }
  return std::nullopt;
}

bool ProgramParser::AddArguments(tensor::Graph& graph, const std::vector<RawArg>& args,
                                 const std::string& unit) {
  for (size_t i = 0; i < args.size(); ++i) {
    const RawArg& arg = args[i];
    auto type = arg.type;
    if (!type) type = ForwardedType(unit, i, arg.name.text);
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
  for (const RawArg& arg : args) {
    if (arg.name.text != field.name) continue;
    Error(arg.name.span, "argument '" + field.name + "' hides the state field of that name",
          Kind::kConsistency)
        .With({field.span, "the state field is declared here"});
    return false;
  }
  if (graph.Find(field.name)) return true;  // read through two windows
  graph.AddInput(field.name, field.dtype, field.shape, field.span);
  return true;
}

void ProgramParser::BuildGraphs() {
  for (size_t i = 0; i < graphs_.size(); ++i) {
    TensorGraph& graph = program_.graphs[i];
    const RawGraph& raw = graphs_[i];
    if (!AddArguments(graph.graph, raw.args, graph.name)) continue;
    bool ok = true;
    for (const auto& [actor_name, window_name] : raw.reads) {
      const Actor* actor = FindActor(program_, actor_name.text);
      if (actor == nullptr) {
        ErrorUnknown("actor", actor_name, NamesOf(program_.actors), Kind::kSafety);
        ok = false;
        continue;
      }
      const Window* window = FindWindow(*actor, window_name.text);
      if (window == nullptr) {
        ErrorUnknown("window of actor '" + actor->name + "'", window_name, NamesOf(actor->windows),
                     Kind::kSafety);
        ok = false;
        continue;
      }
      for (const std::string& field : window->fields) {
        ok = AddState(graph.graph, *FindState(*actor, field), raw.args) && ok;
      }
    }
    if (!ok) continue;
    TensorBody body(source(), diagnostics(), raw.body, graph.graph);
    body.ParseCompute(raw.outputs);
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
  for (tensor::NodeId input : graph.inputs()) {
    const std::string& name = graph.node(input).name;
    if (std::find(args.begin(), args.end(), name) != args.end()) used[input] = true;
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
  for (const Reference& reference : references) {
    if (std::find(candidates.begin(), candidates.end(), reference.name) != candidates.end()) {
      continue;
    }
    ErrorUnknown(what, {reference.name, reference.span}, candidates, Kind::kSafety);
  }
}

void ProgramParser::ResolveReferences() {
  const std::vector<std::string> units = Units();
  const std::vector<std::string> graphs = NamesOf(program_.graphs);
  const std::vector<std::string> pipelines = NamesOf(program_.pipelines);
  for (const Actor& actor : program_.actors) {
    for (const Window& window : actor.windows) ResolveIn(window.readers, "tensor graph", graphs);
  }
  for (const Stage& stage : program_.stages) {
    for (const Statement& s : stage.body) {
      if (s.kind != StatementKind::kForward) continue;
      const std::string target = s.target + (s.handler.empty() ? "" : "." + s.handler);
      ResolveIn({{target, s.span}}, "forward target", units);
    }
  }
  for (const Pipeline& pipeline : program_.pipelines) {
    ResolveIn(pipeline.links, "stage, graph or message", units);
  }
  ResolveIn(program_.schedule.pipelines, "pipeline", pipelines);
  ResolveIn(program_.schedule.actors, "actor", NamesOf(program_.actors));
  for (const Name& name : phase_pipelines_) {
    ResolveIn({{name.text, name.span}}, "pipeline", pipelines);
  }
  for (const auto& [graph_name, numerator, denominator] : metrics_) {
    const TensorGraph* graph = FindGraph(program_, graph_name.text);
    if (graph == nullptr) {
      ErrorUnknown("tensor graph", graph_name, graphs, Kind::kSafety);
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
