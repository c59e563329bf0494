// Topology consistency and reference resolution.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "layers/l1/verifier.h"

namespace l3c::l1 {

using support::Kind;
using tensor::NodeId;

// ---- Topology consistency
// ------------------------------------------------------------------------

void Verifier::CheckEdges() {
  const size_t count = system().nodes.size();
  for (const Edge& edge : system().edges) {
    if (edge.from >= count || edge.to >= count) {
      Error(Kind::kSafety, edge.span, "an edge joins a node that does not exist");
    } else if (edge.from == edge.to) {
      Error(Kind::kSafety, edge.span, "an edge joins '" + NodeName(edge.from) + "' to itself");
    }
  }
}

void Verifier::CheckPlaces() {
  const auto placed = [&](uint32_t node, Span span, const std::string& what) {
    if (system().nodes[node].kind != NodeKind::kCompute) {
      Error(Kind::kSafety, span,
            what + " is placed on '" + NodeName(node) + "', which is a " +
                std::string(NodeKindName(system().nodes[node].kind)) + " node and cannot compute");
    } else if (topology_.LocalMemories(node).empty()) {
      Error(Kind::kSafety, span,
            what + " is placed on '" + NodeName(node) +
                "', which has no edge to a memory node and no vram");
    }
  };
  for (const Actor& a : program_.actors) placed(a.node, a.span, "actor '" + a.name + "'");
  for (const Stage& s : program_.stages) placed(s.node, s.span, "stage '" + s.name + "'");
  for (const TensorGraph& g : program_.graphs) {
    placed(g.node, g.span, "tensor graph '" + g.name + "'");
  }
}

void Verifier::CheckTransfers() {
  for (const Actor& actor : program_.actors) {
    if (!actor.home || topology_.LocalMemories(actor.node).empty()) continue;
    const uint32_t near = MemoryOf(system(), actor.node);
    for (const auto& [from, to] : {std::pair(*actor.home, near), std::pair(near, *actor.home)}) {
      if (topology_.HasPath(from, to)) continue;
      Error(Kind::kSafety, actor.span,
            "the state of actor '" + actor.name + "' lies in '" + NodeName(*actor.home) +
                "', and no path of edges leads from '" + NodeName(from) + "' to '" + NodeName(to) +
                "'")
          .With({system().span, "the system's edges are declared here"});
      break;
    }
  }
  for (const Stage& stage : program_.stages) {
    const auto buffers = BuffersOf(stage);
    ForEachStatement(stage.body, [&](const Statement& s) {
      const bool read = s.kind == StatementKind::kRead;
      if (!read && s.kind != StatementKind::kCopy && s.kind != StatementKind::kDecode) return;
      const uint32_t to = buffers.at(s.buffer).region;
      uint32_t from = to;
      if (read) {
        const BoundField* field = FindField(*index_.FindData(s.data), s.field);
        if (field != nullptr) from = field->storage;
      } else if (const auto source = buffers.find(s.source); source != buffers.end()) {
        from = source->second.region;
      } else if (const auto owner = index_.FindWindowField(stage.reads, s.source)) {
        if (!topology_.LocalMemories(owner->actor->node).empty()) {
          from = HomeOf(system(), *owner->actor);
        }
      }
      if (topology_.HasPath(from, to)) return;
      Error(Kind::kSafety, s.span,
            "no path of edges leads from '" + NodeName(from) + "' to '" + NodeName(to) + "'")
          .With({system().span, "the system's edges are declared here"});
    });
  }
}

// ---- Reference resolution
// ------------------------------------------------------------------------

void Verifier::Unknown(Span span, const std::string& what, const std::string& name) {
  Error(Kind::kSafety, span, "unknown " + what + " '" + name + "'");
}

// The parser resolves what is written; this holds for programs that were built.
void Verifier::CheckReferences() {
  const size_t nodes = system().nodes.size();
  const auto node_ok = [&](uint32_t node, Span span) {
    if (node >= nodes) Error(Kind::kSafety, span, "this is placed on a node that does not exist");
  };
  for (const BoundData& data : program_.data) {
    for (const BoundField& field : data.fields) {
      node_ok(field.storage, field.span);
      const BoundField& first = data.fields.front();
      if (field.path == first.path) continue;
      Error(Kind::kConsistency, field.span,
            "'" + field.name + "' lies in \"" + field.path + "\", but '" + first.name + "' in \"" +
                first.path + "\"")
          .With({first.span, "the fields of one data declaration lie in one folder"});
    }
  }
  for (const Actor& actor : program_.actors) {
    node_ok(actor.node, actor.span);
    for (const Window& window : actor.windows) {
      for (const std::string& field : window.fields) {
        if (index_.FindState(actor, field) == nullptr) Unknown(window.span, "state field", field);
      }
      for (const Reference& reader : window.readers) {
        if (index_.FindGraph(reader.name) == nullptr && index_.FindStage(reader.name) == nullptr) {
          Unknown(reader.span, "stage or tensor graph", reader.name);
        }
      }
    }
    for (const Handler& handler : actor.handlers) {
      for (const tensor::Output& output : handler.graph.outputs()) {
        if (index_.FindState(actor, output.name) == nullptr) {
          Unknown(handler.span, "state field", output.name);
        }
      }
      CheckArgs(handler.graph, handler.args, handler.span);
    }
  }
  for (const TensorGraph& graph : program_.graphs) {
    node_ok(graph.node, graph.span);
    CheckArgs(graph.graph, graph.args, graph.span);
    CheckReads(graph.reads, graph.span);
  }
  for (const Stage& stage : program_.stages) CheckStageReferences(stage);
  for (const Pipeline& pipeline : program_.pipelines) {
    for (const Reference& link : pipeline.links) {
      if (!FindReceiver(link.name)) Unknown(link.span, "stage, graph or message", link.name);
    }
  }
  const Schedule& schedule = program_.schedule;
  for (const Reference& pipeline : schedule.pipelines) {
    if (index_.FindPipeline(pipeline.name) == nullptr) {
      Unknown(pipeline.span, "pipeline", pipeline.name);
    }
  }
  for (const Phase& phase : schedule.phases) {
    for (const std::string& pipeline : {phase.pipeline, phase.eval}) {
      if (pipeline.empty() || index_.FindPipeline(pipeline) != nullptr) continue;
      Unknown(phase.span, "pipeline", pipeline);
    }
  }
  for (const Reference& actor : schedule.actors) {
    if (index_.FindActor(actor.name) == nullptr) Unknown(actor.span, "actor", actor.name);
  }
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Span> seen;
  for (const Metric& metric : schedule.metrics) {
    if (index_.FindGraph(metric.graph) == nullptr) {
      Unknown(metric.span, "tensor graph", metric.graph);
    }
    const auto [first, fresh] =
        seen.try_emplace({metric.name, metric.split, metric.graph}, metric.span);
    if (!fresh) {
      Error(Kind::kConsistency, metric.span,
            "metric '" + metric.name + "' of split '" + metric.split +
                "' stands twice for graph '" + metric.graph + "'")
          .With({first->second, "it is here already"});
    }
  }
}

void Verifier::CheckReads(const std::vector<std::pair<std::string, std::string>>& reads,
                          Span span) {
  for (const auto& [actor_name, window_name] : reads) {
    const Actor* actor = index_.FindActor(actor_name);
    if (actor == nullptr || index_.FindWindow(*actor, window_name) == nullptr) {
      Unknown(span, "window", actor_name + "." + window_name);
    }
  }
}

void Verifier::CheckArgs(const tensor::Graph& graph, const std::vector<std::string>& args,
                         Span span) {
  for (const std::string& arg : args) {
    const auto node = graph.Find(arg);
    if (!node || graph.node(*node).op != tensor::Op::kInput) Unknown(span, "argument", arg);
  }
}

void Verifier::CheckStageReferences(const Stage& stage) {
  if (stage.node >= system().nodes.size()) {
    Error(Kind::kSafety, stage.span, "this is placed on a node that does not exist");
  }
  if (stage.samples && index_.FindData(stage.sampling.data) == nullptr) {
    Unknown(stage.sampling.span, "data", stage.sampling.data);
  }
  CheckReads(stage.reads, stage.span);
  const auto buffers = BuffersOf(stage);
  for (const auto& [name, buffer] : buffers) {
    if (buffer.region >= system().nodes.size()) {
      Error(Kind::kSafety, buffer.span, "'" + name + "' is on a node that does not exist");
    }
  }
  std::set<std::string> values;
  ForEachStatement(stage.body, [&](const Statement& s) {
    if (s.kind == StatementKind::kLet) values.insert(s.buffer);
  });
  const auto state = [&](const std::string& name) {
    return index_.FindWindowField(stage.reads, name).has_value();
  };
  ForEachStatement(stage.body, [&](const Statement& s) {
    std::vector<std::string> used = s.buffers;
    if (!s.buffer.empty() && s.kind != StatementKind::kLet) used.push_back(s.buffer);
    if (!s.source.empty() && !(s.kind == StatementKind::kCopy && state(s.source))) {
      used.push_back(s.source);
    }
    for (const std::string& name : used) {
      if (!buffers.contains(name)) Unknown(s.span, "buffer", name);
    }
    for (NodeId input : s.value.inputs()) {
      const std::string& name = s.value.node(input).name;
      if (!buffers.contains(name) && !values.contains(name) && !state(name)) {
        Unknown(s.span, "value", name);
      }
    }
    const bool expression = s.kind == StatementKind::kIf || s.kind == StatementKind::kLet;
    if (expression && s.value.outputs().size() != 1) {
      Error(Kind::kSafety, s.span, "this has no value");
    }
    if (s.kind == StatementKind::kForward && !FindReceiver(TargetOf(s))) {
      Unknown(s.span, "forward target", TargetOf(s));
    }
    if (s.kind == StatementKind::kRead) {
      const BoundData* data = index_.FindData(s.data);
      if (data == nullptr) {
        Unknown(s.span, "data", s.data);
      } else if (s.field != kValidField && FindField(*data, s.field) == nullptr) {
        Unknown(s.span, "field", s.field);
      }
    }
  });
}

// What runs must be in the schedule.
void Verifier::CheckScheduled() {
  const Schedule& schedule = program_.schedule;
  std::set<std::string_view> pipelines, actors;
  for (const Reference& reference : schedule.pipelines) pipelines.insert(reference.name);
  for (const Reference& reference : schedule.actors) actors.insert(reference.name);
  for (const Phase& phase : schedule.phases) {
    for (const std::string& pipeline : {phase.pipeline, phase.eval}) {
      if (pipeline.empty() || pipelines.contains(pipeline)) continue;
      Error(Kind::kSafety, phase.span,
            "phase '" + phase.name + "' runs pipeline '" + pipeline + "', which is not scheduled")
          .Fix("add it to pipelines: [...]");
    }
  }
  for (const Reference& reference : schedule.pipelines) {
    const Pipeline* pipeline = index_.FindPipeline(reference.name);
    const std::vector<Reference> links =
        flows_.IsRun(*pipeline) ? flows_.LinksOf(*pipeline) : pipeline->links;
    for (const Reference& link : links) {
      const HandlerRef* handler = index_.FindHandler(link.name);
      if (handler == nullptr || actors.contains(handler->actor->name)) continue;
      Error(Kind::kSafety, link.span,
            "pipeline '" + pipeline->name + "' sends to actor '" + handler->actor->name +
                "', which is not scheduled")
          .Fix("add it to actors: [...]");
    }
  }
}

}  // namespace l3c::l1
