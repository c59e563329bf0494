// Actors' state and the tensor programs over it: windows, types, reachability, memory.
#include <algorithm>
#include <set>

#include "layers/l1/verifier.h"
#include "layers/support/units.h"

namespace l3c::l1 {

using support::Kind;
using tensor::NodeId;

// ---- Window separation
// ---------------------------------------------------------------------------

void Verifier::CheckWindows() {
  for (const TensorGraph& graph : program_.graphs) {
    CheckGranted("tensor graph", graph.name, graph.span, graph.reads);
  }
  for (const Stage& stage : program_.stages) {
    CheckGranted("stage", stage.name, stage.span, stage.reads);
  }
  for (const Pipeline& pipeline : program_.pipelines) {
    CheckOrder(flows_.IsRun(pipeline) ? flows_.LinksOf(pipeline) : pipeline.links);
  }
  for (const Phase& phase : program_.schedule.phases) CheckEvaluation(phase);
}

void Verifier::CheckGranted(const std::string& what, const std::string& name, Span span,
                            const std::vector<std::pair<std::string, std::string>>& reads) {
  for (const auto& [actor_name, window_name] : reads) {
    const Window* window = index_.FindWindow(*index_.FindActor(actor_name), window_name);
    const bool granted = std::any_of(window->readers.begin(), window->readers.end(),
                                     [&](const Reference& r) { return r.name == name; });
    if (granted) continue;
    Error(Kind::kSafety, span,
          what + " '" + name + "' reads window '" + actor_name + "." + window_name +
              "', which does not name it as a reader")
        .With({window->span, "the window is declared here"})
        .Fix("add '" + name + "' to its readers(...)");
  }
}

// Within a step the chain of dependencies must finish the reader before the message arrives; the
// actor then holds back the next step's reader, at any depth. A reader behind the message has no
// such fence, unless it is a turn of its own: buffers of its own are forwarded to it, and it waits
// for the message that stands before it.
void Verifier::CheckOrder(const std::vector<Reference>& links) {
  std::map<const Actor*, const Reference*> written;
  std::set<std::string> forwarded;  // to these, by a stage so far
  std::set<std::string> seen;
  for (const Reference& link : links) {
    const Stage* stage = index_.FindStage(link.name);
    const TensorGraph* graph = index_.FindGraph(link.name);
    const bool own = forwarded.contains(link.name) && !seen.contains(link.name);
    for (const auto& [actor_name, window] : stage != nullptr   ? stage->reads
                                            : graph != nullptr ? graph->reads
                                                               : decltype(graph->reads){}) {
      const auto message = written.find(index_.FindActor(actor_name));
      if (message == written.end() || own) continue;
      Error(Kind::kSafety, link.span,
            "'" + link.name + "' may read actor '" + actor_name + "' while '" +
                message->second->name + "' changes it")
          .With({message->second->span, "the message is sent here, before the reader"});
      break;
    }
    seen.insert(link.name);
    if (const HandlerRef* handler = index_.FindHandler(link.name)) {
      written.emplace(handler->actor, &link);
    }
    if (stage == nullptr) continue;
    ForEachStatement(stage->body, [&](const Statement& s) {
      if (s.kind == StatementKind::kForward) forwarded.insert(TargetOf(s));
    });
  }
}

// An evaluation runs while the training pipeline of the phase rests; it must leave the state as
// it is, and may read it.
void Verifier::CheckEvaluation(const Phase& phase) {
  if (phase.eval.empty()) return;
  for (const Reference& link : flows_.LinksOf(*index_.FindPipeline(phase.eval))) {
    if (index_.FindHandler(link.name) == nullptr) continue;
    Error(Kind::kSafety, link.span,
          "pipeline '" + phase.eval + "' evaluates phase '" + phase.name +
              "', but sends a message that changes an actor's state")
        .With({phase.span, "the phase is declared here"});
  }
}

// A copy stays one: the same fields from the same values, and a message for each of the other's.
void Verifier::CheckReplicas() {
  for (const Actor& actor : program_.actors) {
    if (actor.replicates.empty()) continue;
    const Actor* other = index_.FindActor(actor.replicates);
    if (other == nullptr) {
      Unknown(actor.span, "actor", actor.replicates);
      continue;
    }
    const auto same = [](const StateField& a, const StateField& b) {
      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.init == b.init &&
             a.a == b.a;
    };
    if (!std::equal(actor.state.begin(), actor.state.end(), other->state.begin(),
                    other->state.end(), same)) {
      Error(Kind::kConsistency, actor.span,
            "actor '" + actor.name + "' replicates '" + other->name +
                "', but has other state fields or initial values")
          .With({other->span, "'" + other->name + "' is declared here"});
    }
    for (const StateField& field : actor.state) {
      if (!field.parameter) continue;
      Error(Kind::kConsistency, field.span,
            "field '" + field.name + "' of actor '" + actor.name +
                "' is a parameter, but '" + actor.name + "' is a copy")
          .With({other->span, "the parameters are those of '" + other->name + "'"})
          .Fix("leave out `param`");
    }
    CheckReplicaHandlers(actor, *other);
    CheckReplicaMessages(actor, *other);
  }
}

// A message must do to the copy what it does to the other, or the two drift apart.
void Verifier::CheckReplicaHandlers(const Actor& actor, const Actor& other) {
  const auto same_node = [](const tensor::Node& a, const tensor::Node& b) {
    return a.op == b.op && a.inputs == b.inputs && a.attr == b.attr && a.dtype == b.dtype &&
           a.shape == b.shape;
  };
  const auto same_output = [](const tensor::Output& a, const tensor::Output& b) {
    return a.name == b.name && a.node == b.node;
  };
  for (const Handler& handler : actor.handlers) {
    const auto twin = std::find_if(other.handlers.begin(), other.handlers.end(),
                                   [&](const Handler& h) { return h.message == handler.message; });
    if (twin == other.handlers.end()) continue;  // sending it is an error by itself
    const tensor::Graph& a = handler.graph;
    const tensor::Graph& b = twin->graph;
    if (handler.args.size() == twin->args.size() &&
        std::ranges::equal(a.nodes(), b.nodes(), same_node) &&
        std::ranges::equal(a.outputs(), b.outputs(), same_output)) {
      continue;
    }
    Error(Kind::kConsistency, handler.span,
          "'" + handler.message + "' of actor '" + actor.name + "' is not what it is of '" +
              other.name + "', which '" + actor.name + "' replicates")
        .With({twin->span, "of '" + other.name + "' it is declared here"})
        .Fix("write the same lets in the same order");
  }
}

void Verifier::CheckReplicaMessages(const Actor& actor, const Actor& other) {
  for (const Pipeline& pipeline : program_.pipelines) {
    if (!flows_.IsRun(pipeline)) continue;
    std::map<std::string, int> missing;  // by message of the other
    std::map<std::string, Span> where;
    for (const Reference& link : flows_.LinksOf(pipeline)) {
      const HandlerRef* ref = index_.FindHandler(link.name);
      if (ref == nullptr) continue;
      const std::string& message = ref->handler->message;
      missing[message] += ref->actor == &other ? 1 : ref->actor == &actor ? -1 : 0;
      where[message] = link.span;
    }
    for (const auto& [message, count] : missing) {
      if (count == 0) continue;
      Error(
          Kind::kConsistency, where.at(message),
          "pipeline '" + pipeline.name + "' sends '" + message + "' to " +
              (count > 0
                   ? "'" + other.name + "', but not to '" + actor.name + "', which replicates it"
                   : "'" + actor.name + "', but not to '" + other.name + "', which it replicates"))
          .With({actor.span, "'" + actor.name + "' is declared here"})
          .Fix("send it to both, once each");
    }
  }
}

// ---- Shape propagation
// ---------------------------------------------------------------------------

void Verifier::CheckStateTypes() {
  const auto same = [&](const tensor::Graph& graph, NodeId id, const StateField& field, Span span) {
    const tensor::Node& node = graph.node(id);
    const TensorType used{node.dtype, node.shape};
    const TensorType declared{field.dtype, field.shape};
    if (used == declared) return;
    Error(Kind::kConsistency, span,
          "'" + field.name + "' is " + Text(declared) + ", but is used as " + Text(used))
        .With({field.span, "it is declared here"});
  };
  for (const Actor& actor : program_.actors) {
    for (const Handler& handler : actor.handlers) {
      for (NodeId input : handler.graph.inputs()) {
        const StateField* field = index_.FindState(actor, handler.graph.node(input).name);
        if (field != nullptr) same(handler.graph, input, *field, handler.span);
      }
      for (const tensor::Output& output : handler.graph.outputs()) {
        same(handler.graph, output.node, *index_.FindState(actor, output.name), handler.span);
      }
    }
  }
  for (const TensorGraph& graph : program_.graphs) {
    const std::set<std::string_view> args(graph.args.begin(), graph.args.end());
    for (NodeId input : graph.graph.inputs()) {
      const std::string& name = graph.graph.node(input).name;
      if (args.contains(name)) continue;
      const auto owner = index_.FindWindowField(graph.reads, name);
      if (!owner) {
        Error(Kind::kSafety, graph.span,
              "tensor graph '" + graph.name + "' uses '" + name + "', which no window grants");
      } else {
        same(graph.graph, input, *owner->field, graph.span);
      }
    }
  }
}

// ---- Tensor reachability
// -------------------------------------------------------------------------

void Verifier::CheckReachability() {
  for (const TensorGraph& graph : program_.graphs) {
    CheckReachable(graph.graph, graph.args, "tensor graph '" + graph.name + "'", graph.span);
  }
  for (const Stage& stage : program_.stages) CheckValues(stage);
  for (const Actor& actor : program_.actors) {
    std::set<std::string> used;
    for (const Window& window : actor.windows) {
      used.insert(window.fields.begin(), window.fields.end());
    }
    for (const Handler& handler : actor.handlers) {
      CheckReachable(handler.graph, handler.args,
                     "message '" + actor.name + "." + handler.message + "'", handler.span);
      for (NodeId input : handler.graph.inputs()) used.insert(handler.graph.node(input).name);
      for (const tensor::Output& output : handler.graph.outputs()) used.insert(output.name);
    }
    for (const StateField& field : actor.state) {
      if (used.contains(field.name)) continue;
      Error(Kind::kLiveness, field.span,
            "state field '" + field.name + "' is in no window and no message touches it");
    }
  }
}

void Verifier::CheckReachable(const tensor::Graph& graph, const std::vector<std::string>& args,
                              const std::string& where, Span fallback) {
  std::vector<bool> reached(graph.size());
  for (const tensor::Output& output : graph.outputs()) reached[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!reached[id]) continue;
    for (NodeId input : graph.node(id).inputs) reached[input] = true;
  }
  // An operand of a dead value is dead for that reason; the value itself is reported.
  std::vector<bool> has_user(graph.size());
  for (const tensor::Node& user : graph.nodes()) {
    for (NodeId input : user.inputs) has_user[input] = true;
  }
  const std::set<std::string_view> arguments(args.begin(), args.end());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const tensor::Node& node = graph.node(id);
    if (reached[id] || has_user[id]) continue;
    const bool input = node.op == tensor::Op::kInput;
    if (input && !arguments.contains(node.name)) continue;
    Error(Kind::kLiveness, node.span.known() ? node.span : fallback,
          std::string(input ? "argument" : "value") + " '" + node.name + "' of " + where +
              " serves no output");
  }
}

// What a let of a stage binds serves a condition, or another let.
void Verifier::CheckValues(const Stage& stage) {
  std::set<std::string> used;
  ForEachStatement(stage.body, [&](const Statement& s) {
    for (NodeId input : s.value.inputs()) used.insert(s.value.node(input).name);
  });
  ForEachStatement(stage.body, [&](const Statement& s) {
    if (s.kind != StatementKind::kLet || used.contains(s.buffer)) return;
    Error(Kind::kLiveness, s.span,
          "value '" + s.buffer + "' of stage '" + stage.name + "' serves no condition");
  });
}

// ---- Persistent memory
// ---------------------------------------------------------------------------

void Verifier::CheckPersistentMemory() {
  // Bytes by memory node; f64, so that no sum of absurd sizes overflows.
  std::map<uint32_t, double> used;
  for (const Actor& actor : program_.actors) {
    if (topology_.LocalMemories(actor.node).empty()) continue;  // reported by CheckPlaces
    const uint32_t memory = HomeOf(system(), actor);
    for (const StateField& field : actor.state) {
      used[memory] += static_cast<double>(ByteSize(field.dtype, field.shape));
    }
    const double capacity = static_cast<double>(BufferCapacity(system().nodes[memory]));
    if (used[memory] <= capacity) continue;
    Error(Kind::kResourceBound, actor.span,
          "the state of actor '" + actor.name + "' needs " +
              support::PrintBytes(static_cast<int64_t>(std::min(used[memory], 9e18))) + " in '" +
              NodeName(memory) + "', which has " +
              support::PrintBytes(BufferCapacity(system().nodes[memory])))
        .With({system().nodes[memory].span, "'" + NodeName(memory) + "' is declared here"});
  }
}

}  // namespace l3c::l1
