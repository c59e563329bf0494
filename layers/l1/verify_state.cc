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
    for (const auto& [actor_name, window_name] : graph.reads) {
      const Actor* actor = FindActor(program_, actor_name);
      const Window* window = FindWindow(*actor, window_name);
      const bool granted = std::any_of(window->readers.begin(), window->readers.end(),
                                       [&](const Reference& r) { return r.name == graph.name; });
      if (!granted) {
        Error(Kind::kSafety, graph.span,
              "tensor graph '" + graph.name + "' reads window '" + actor_name + "." + window_name +
                  "', which does not name it as a reader")
            .With({window->span, "the window is declared here"})
            .Fix("add '" + graph.name + "' to its readers(...)");
      }
      for (const Pipeline& pipeline : program_.pipelines) CheckOrder(pipeline, graph, *actor);
    }
  }
  for (const Phase& phase : program_.schedule.phases) CheckEvaluation(phase);
}

// Within a step the chain of dependencies must finish the reader before the message arrives; the
// actor then holds back the next step's reader. A reader behind the message has no such fence,
// unless it is a turn of its own: a batch of its own is forwarded to it, and it waits for the
// message that the pipeline names before it.
void Verifier::CheckOrder(const Pipeline& pipeline, const TensorGraph& graph, const Actor& actor) {
  std::optional<size_t> written;
  for (size_t i = 0; i < pipeline.links.size(); ++i) {
    const auto handler = FindHandler(program_, pipeline.links[i].name);
    if (handler && handler->actor == &actor) written = i;
    if (pipeline.links[i].name != graph.name || !written || HasBatch(pipeline, i)) continue;
    Error(Kind::kSafety, pipeline.links[i].span,
          "'" + graph.name + "' may read actor '" + actor.name + "' while '" +
              pipeline.links[*written].name + "' changes it")
        .With({pipeline.links[*written].span, "the message is sent here, before the reader"});
  }
}

// An evaluation runs while the training pipeline of the phase rests; it must leave the state as
// it is, and may read it.
void Verifier::CheckEvaluation(const Phase& phase) {
  if (phase.eval.empty()) return;
  for (const Reference& link : FindPipeline(program_, phase.eval)->links) {
    if (!FindHandler(program_, link.name)) continue;
    Error(Kind::kSafety, link.span,
          "pipeline '" + phase.eval + "' evaluates phase '" + phase.name +
              "', but sends a message that changes an actor's state")
        .With({phase.span, "the phase is declared here"});
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
        const StateField* field = FindState(actor, handler.graph.node(input).name);
        if (field != nullptr) same(handler.graph, input, *field, handler.span);
      }
      for (const tensor::Output& output : handler.graph.outputs()) {
        same(handler.graph, output.node, *FindState(actor, output.name), handler.span);
      }
    }
  }
  for (const TensorGraph& graph : program_.graphs) {
    for (NodeId input : graph.graph.inputs()) {
      const std::string& name = graph.graph.node(input).name;
      if (std::find(graph.args.begin(), graph.args.end(), name) != graph.args.end()) continue;
      const StateField* field = WindowField(graph, name);
      if (field == nullptr) {
        Error(Kind::kSafety, graph.span,
              "tensor graph '" + graph.name + "' uses '" + name + "', which no window grants");
      } else {
        same(graph.graph, input, *field, graph.span);
      }
    }
  }
}

const StateField* Verifier::WindowField(const TensorGraph& graph, const std::string& name) const {
  for (const auto& [actor_name, window_name] : graph.reads) {
    const Actor* actor = FindActor(program_, actor_name);
    const std::vector<std::string>& fields = FindWindow(*actor, window_name)->fields;
    if (std::find(fields.begin(), fields.end(), name) != fields.end()) {
      return FindState(*actor, name);
    }
  }
  return nullptr;
}

// ---- Tensor reachability
// -------------------------------------------------------------------------

void Verifier::CheckReachability() {
  for (const TensorGraph& graph : program_.graphs) {
    CheckReachable(graph.graph, graph.args, "tensor graph '" + graph.name + "'", graph.span);
  }
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
  for (NodeId id = 0; id < graph.size(); ++id) {
    const tensor::Node& node = graph.node(id);
    if (reached[id]) continue;
    const bool input = node.op == tensor::Op::kInput;
    if (input && std::find(args.begin(), args.end(), node.name) == args.end()) continue;
    // An operand of a dead value is dead for that reason; the value itself is reported.
    const bool has_user =
        std::any_of(graph.nodes().begin() + id, graph.nodes().end(), [&](const tensor::Node& user) {
          return std::find(user.inputs.begin(), user.inputs.end(), id) != user.inputs.end();
        });
    if (has_user) continue;
    Error(Kind::kLiveness, node.span.known() ? node.span : fallback,
          std::string(input ? "argument" : "value") + " '" + node.name + "' of " + where +
              " serves no output");
  }
}

// ---- Persistent memory
// ---------------------------------------------------------------------------

void Verifier::CheckPersistentMemory() {
  // Bytes by memory node; f64, so that no sum of absurd sizes overflows.
  std::map<uint32_t, double> used;
  for (const Actor& actor : program_.actors) {
    const auto memories = LocalMemories(system(), actor.node);
    if (memories.empty()) continue;  // reported by CheckTransfers
    const uint32_t memory = memories.front();
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
