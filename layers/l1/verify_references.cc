// Topology consistency and reference resolution.
#include <algorithm>

#include "layers/l1/verifier.h"

namespace l3c::l1 {

using support::Kind;

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

void Verifier::CheckTransfers() {
  const auto placed = [&](uint32_t node, Span span, const std::string& what) {
    if (system().nodes[node].kind != NodeKind::kCompute) {
      Error(Kind::kSafety, span,
            what + " is placed on '" + NodeName(node) + "', which is a " +
                std::string(NodeKindName(system().nodes[node].kind)) + " node and cannot compute");
    } else if (LocalMemories(system(), node).empty()) {
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
  for (const Stage& stage : program_.stages) {
    const auto buffers = BuffersOf(stage);
    for (const Statement& s : stage.body) {
      const uint32_t to = buffers.contains(s.buffer) ? buffers.at(s.buffer).region : 0;
      uint32_t from = to;
      if (s.kind == StatementKind::kRead) {
        const BoundField* field = FindField(*FindData(program_, s.data), s.field);
        if (field != nullptr) from = field->storage;
      } else if (s.kind == StatementKind::kCopy) {
        from = buffers.at(s.source).region;
      }
      if (HasPath(system(), from, to)) continue;
      Error(Kind::kSafety, s.span,
            "no path of edges leads from '" + NodeName(from) + "' to '" + NodeName(to) + "'")
          .With({system().span, "the system's edges are declared here"});
    }
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
        if (FindState(actor, field) == nullptr) Unknown(window.span, "state field", field);
      }
      for (const Reference& reader : window.readers) {
        if (FindGraph(program_, reader.name) == nullptr) {
          Unknown(reader.span, "tensor graph", reader.name);
        }
      }
    }
    for (const Handler& handler : actor.handlers) {
      for (const tensor::Output& output : handler.graph.outputs()) {
        if (FindState(actor, output.name) == nullptr) {
          Unknown(handler.span, "state field", output.name);
        }
      }
      CheckArgs(handler.graph, handler.args, handler.span);
    }
  }
  for (const TensorGraph& graph : program_.graphs) {
    node_ok(graph.node, graph.span);
    CheckArgs(graph.graph, graph.args, graph.span);
    for (const auto& [actor_name, window_name] : graph.reads) {
      const Actor* actor = FindActor(program_, actor_name);
      if (actor == nullptr || FindWindow(*actor, window_name) == nullptr) {
        Unknown(graph.span, "window", actor_name + "." + window_name);
      }
    }
  }
  for (const Stage& stage : program_.stages) CheckStageReferences(stage);
  for (const Pipeline& pipeline : program_.pipelines) {
    for (const Reference& link : pipeline.links) {
      if (!FindReceiver(link.name)) Unknown(link.span, "stage, graph or message", link.name);
    }
  }
  const Schedule& schedule = program_.schedule;
  for (const Reference& pipeline : schedule.pipelines) {
    if (FindPipeline(program_, pipeline.name) == nullptr) {
      Unknown(pipeline.span, "pipeline", pipeline.name);
    }
  }
  for (const Phase& phase : schedule.phases) {
    for (const std::string& pipeline : {phase.pipeline, phase.eval}) {
      if (pipeline.empty() || FindPipeline(program_, pipeline) != nullptr) continue;
      Unknown(phase.span, "pipeline", pipeline);
    }
  }
  for (const Reference& actor : schedule.actors) {
    if (FindActor(program_, actor.name) == nullptr) Unknown(actor.span, "actor", actor.name);
  }
  for (const Metric& metric : schedule.metrics) {
    if (FindGraph(program_, metric.graph) == nullptr) {
      Unknown(metric.span, "tensor graph", metric.graph);
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
  if (stage.samples && FindData(program_, stage.sampling.data) == nullptr) {
    Unknown(stage.sampling.span, "data", stage.sampling.data);
  }
  for (const auto& [name, buffer] : BuffersOf(stage)) {
    if (buffer.region >= system().nodes.size()) {
      Error(Kind::kSafety, buffer.span, "'" + name + "' is on a node that does not exist");
    }
  }
  const auto buffers = BuffersOf(stage);
  for (const Statement& s : stage.body) {
    std::vector<std::string> used = s.buffers;
    if (!s.buffer.empty()) used.push_back(s.buffer);
    if (!s.source.empty()) used.push_back(s.source);
    for (const std::string& name : used) {
      if (!buffers.contains(name)) Unknown(s.span, "buffer", name);
    }
    if (s.kind == StatementKind::kForward && !FindReceiver(TargetOf(s))) {
      Unknown(s.span, "forward target", TargetOf(s));
    }
    if (s.kind == StatementKind::kRead) {
      const BoundData* data = FindData(program_, s.data);
      if (data == nullptr) {
        Unknown(s.span, "data", s.data);
      } else if (s.field != kValidField && FindField(*data, s.field) == nullptr) {
        Unknown(s.span, "field", s.field);
      }
    }
  }
}

// What runs must be in the schedule.
void Verifier::CheckScheduled() {
  const Schedule& schedule = program_.schedule;
  const auto listed = [](const std::vector<Reference>& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Reference& r) { return r.name == name; });
  };
  for (const Phase& phase : schedule.phases) {
    for (const std::string& pipeline : {phase.pipeline, phase.eval}) {
      if (pipeline.empty() || listed(schedule.pipelines, pipeline)) continue;
      Error(Kind::kSafety, phase.span,
            "phase '" + phase.name + "' runs pipeline '" + pipeline + "', which is not scheduled")
          .Fix("add it to pipelines: [...]");
    }
  }
  for (const Reference& reference : schedule.pipelines) {
    const Pipeline* pipeline = FindPipeline(program_, reference.name);
    for (const Reference& link : pipeline->links) {
      const auto handler = FindHandler(program_, link.name);
      if (!handler || listed(schedule.actors, handler->actor->name)) continue;
      Error(Kind::kSafety, link.span,
            "pipeline '" + pipeline->name + "' sends to actor '" + handler->actor->name +
                "', which is not scheduled")
          .Fix("add it to actors: [...]");
    }
  }
}

}  // namespace l3c::l1
