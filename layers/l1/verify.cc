#include "layers/l1/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l1/text.h"
#include "layers/support/units.h"
#include "layers/tensor/shape_rules.h"

namespace l3c::l1 {
namespace {

using support::Diagnostics;
using support::Kind;
using tensor::DType;
using tensor::NodeId;
using tensor::Shape;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

std::string Text(const Type& type) { return tensor::TypeToString(type.dtype, type.shape); }

// A buffer of a stage, by name.
struct BufferInfo {
  Type type;
  uint32_t region = 0;
  Span span;
};

std::map<std::string, BufferInfo> BuffersOf(const Stage& stage) {
  std::map<std::string, BufferInfo> buffers;
  for (const BufferParam& p : stage.params)
    buffers[p.name] = {{p.dtype, p.shape}, p.region, p.span};
  for (const Statement& s : stage.body) {
    if (s.kind == StatementKind::kAlloc) buffers[s.buffer] = {{s.dtype, s.shape}, s.region, s.span};
  }
  return buffers;
}

std::string TargetOf(const Statement& forward) {
  return forward.target + (forward.handler.empty() ? "" : "." + forward.handler);
}

std::string PrintStatement(const Statement& s) {
  switch (s.kind) {
    case StatementKind::kAlloc:
      return "let " + s.buffer;
    case StatementKind::kRead:
      return "read(" + s.buffer + ")";
    case StatementKind::kCopy:
      return "copy(" + s.buffer + ", " + s.source + ")";
    case StatementKind::kForward:
      return "forward(" + TargetOf(s) + ")";
    case StatementKind::kDrop:
      return "Drop(" + s.buffer + ")";
  }
  return "";
}

// What may be handed over to, whatever it is.
struct Receiver {
  uint32_t node = 0;
  Span span;
  struct Slot {
    std::string name;
    Type type;
    std::optional<uint32_t> region;  // stages say where they expect it
  };
  std::vector<Slot> slots;
};

Receiver::Slot SlotOf(const tensor::Graph& graph, const std::string& arg) {
  const tensor::Node& node = graph.node(*graph.Find(arg));
  return {arg, {node.dtype, node.shape}, std::nullopt};
}

class Verifier {
 public:
  Verifier(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  bool Run() {
    const size_t before = diagnostics_.all().size();
    const auto clean = [&] { return diagnostics_.all().size() == before; };
    // Later checks follow names and node numbers that these have found good.
    CheckEdges();
    if (!clean() || IsSystemFragment(program_)) return clean();
    CheckReferences();
    if (!clean()) return false;
    CheckTransfers();
    CheckScheduled();
    CheckSampling();
    CheckForwards();
    CheckPipelineLinks();
    CheckWindows();
    CheckStateTypes();
    CheckRegions();
    CheckConservation();
    CheckReachability();
    CheckPersistentMemory();
    CheckFiniteness();
    return clean();
  }

 private:
  support::Diagnostic& Error(Kind kind, Span span, std::string message) {
    return diagnostics_.Error(kind, span, std::move(message));
  }
  const System& system() const { return program_.system; }
  const std::string& NodeName(uint32_t node) const { return system().nodes[node].name; }

  std::optional<Receiver> FindReceiver(const std::string& name) const {
    Receiver receiver;
    if (const Stage* stage = FindStage(program_, name)) {
      receiver.node = stage->node;
      receiver.span = stage->span;
      for (const BufferParam& p : stage->params) {
        receiver.slots.push_back({p.name, {p.dtype, p.shape}, p.region});
      }
      return receiver;
    }
    if (const TensorGraph* graph = FindGraph(program_, name)) {
      receiver.node = graph->node;
      receiver.span = graph->span;
      for (const std::string& arg : graph->args) {
        receiver.slots.push_back(SlotOf(graph->graph, arg));
      }
      return receiver;
    }
    if (const auto ref = FindHandler(program_, name)) {
      receiver.node = ref->actor->node;
      receiver.span = ref->handler->span;
      for (const std::string& arg : ref->handler->args) {
        receiver.slots.push_back(SlotOf(ref->handler->graph, arg));
      }
      return receiver;
    }
    return std::nullopt;
  }

  // ---- Topology consistency -----------------------------------------------------------------

  void CheckEdges() {
    const size_t count = system().nodes.size();
    for (const Edge& edge : system().edges) {
      if (edge.from >= count || edge.to >= count) {
        Error(Kind::kSafety, edge.span, "an edge joins a node that does not exist");
      } else if (edge.from == edge.to) {
        Error(Kind::kSafety, edge.span, "an edge joins '" + NodeName(edge.from) + "' to itself");
      }
    }
  }

  void CheckTransfers() {
    const auto placed = [&](uint32_t node, Span span, const std::string& what) {
      if (system().nodes[node].kind != NodeKind::kCompute) {
        Error(Kind::kSafety, span,
              what + " is placed on '" + NodeName(node) + "', which is a " +
                  std::string(NodeKindName(system().nodes[node].kind)) +
                  " node and cannot compute");
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

  // ---- Reference resolution -----------------------------------------------------------------

  void Unknown(Span span, const std::string& what, const std::string& name) {
    Error(Kind::kSafety, span, "unknown " + what + " '" + name + "'");
  }

  // The parser resolves what is written; this holds for programs that were built.
  void CheckReferences() {
    const size_t nodes = system().nodes.size();
    const auto node_ok = [&](uint32_t node, Span span) {
      if (node >= nodes) Error(Kind::kSafety, span, "this is placed on a node that does not exist");
    };
    for (const BoundData& data : program_.data) {
      for (const BoundField& field : data.fields) node_ok(field.storage, field.span);
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

  void CheckArgs(const tensor::Graph& graph, const std::vector<std::string>& args, Span span) {
    for (const std::string& arg : args) {
      const auto node = graph.Find(arg);
      if (!node || graph.node(*node).op != tensor::Op::kInput) Unknown(span, "argument", arg);
    }
  }

  void CheckStageReferences(const Stage& stage) {
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
  void CheckScheduled() {
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

  // ---- Forwarding signatures ----------------------------------------------------------------

  void CheckSampling() {
    for (const Stage& stage : program_.stages) {
      if (stage.samples && !stage.params.empty()) {
        Error(Kind::kSafety, stage.span,
              "stage '" + stage.name + "' draws batches, so nothing can be forwarded to it");
      }
      const auto buffers = BuffersOf(stage);
      for (const Statement& s : stage.body) {
        if (s.kind == StatementKind::kRead) CheckRead(stage, s, buffers);
        if (s.kind == StatementKind::kCopy &&
            buffers.at(s.buffer).type != buffers.at(s.source).type) {
          Error(Kind::kSafety, s.span,
                "'" + s.source + "' is " + Text(buffers.at(s.source).type) + ", but '" + s.buffer +
                    "' is " + Text(buffers.at(s.buffer).type));
        }
      }
    }
  }

  void CheckRead(const Stage& stage, const Statement& s,
                 const std::map<std::string, BufferInfo>& buffers) {
    if (!stage.samples || stage.sampling.data != s.data) {
      Error(Kind::kSafety, s.span,
            "stage '" + stage.name + "' reads '" + s.data + "', which it does not sample")
          .Fix("add sample: epoch_shuffle(" + s.data + ", split: train, batch: 128)");
      return;
    }
    Type expected{DType::kF32, {stage.sampling.batch}};
    if (const BoundField* field = FindField(*FindData(program_, s.data), s.field)) {
      expected.dtype = field->dtype;
      expected.shape.insert(expected.shape.end(), field->shape.begin(), field->shape.end());
    }
    const BufferInfo& buffer = buffers.at(s.buffer);
    if (buffer.type == expected) return;
    Error(Kind::kSafety, s.span,
          "a batch of '" + s.data + "." + s.field + "' is " + Text(expected) + ", but '" +
              s.buffer + "' is " + Text(buffer.type))
        .With({buffer.span, "'" + s.buffer + "' is allocated here"});
  }

  void CheckForwards() {
    for (const Stage& stage : program_.stages) {
      const auto buffers = BuffersOf(stage);
      for (const Statement& s : stage.body) {
        if (s.kind != StatementKind::kForward) continue;
        const Receiver receiver = *FindReceiver(TargetOf(s));
        if (s.buffers.size() != receiver.slots.size()) {
          Error(Kind::kSafety, s.span,
                "'" + TargetOf(s) + "' takes " + std::to_string(receiver.slots.size()) +
                    " buffers, not " + std::to_string(s.buffers.size()))
              .With({receiver.span, "'" + TargetOf(s) + "' is declared here"});
          continue;
        }
        for (size_t i = 0; i < s.buffers.size(); ++i) {
          const BufferInfo& buffer = buffers.at(s.buffers[i]);
          if (buffer.type == receiver.slots[i].type) continue;
          Error(Kind::kSafety, s.span,
                "'" + s.buffers[i] + "' is " + Text(buffer.type) + ", but argument '" +
                    receiver.slots[i].name + "' of '" + TargetOf(s) + "' is " +
                    Text(receiver.slots[i].type))
              .With({receiver.span, "'" + TargetOf(s) + "' is declared here"});
        }
      }
    }
  }

  // Along a pipeline a stage hands over by forward; a graph's outputs go by their names.
  void CheckPipelineLinks() {
    for (const Pipeline& pipeline : program_.pipelines) {
      if (pipeline.links.empty()) continue;
      for (size_t i = 0; i + 1 < pipeline.links.size(); ++i) {
        const Reference& link = pipeline.links[i];
        const Reference& next = pipeline.links[i + 1];
        if (const Stage* stage = FindStage(program_, link.name)) {
          const bool forwards =
              std::any_of(stage->body.begin(), stage->body.end(), [&](const Statement& s) {
                return s.kind == StatementKind::kForward && TargetOf(s) == next.name;
              });
          if (!forwards) {
            Error(Kind::kSafety, next.span,
                  "stage '" + stage->name + "' comes before '" + next.name +
                      "' in the pipeline, but does not forward to it")
                .With({stage->span, "'" + stage->name + "' is declared here"});
          }
        } else if (const TensorGraph* graph = FindGraph(program_, link.name)) {
          CheckByName(*graph, next);
        } else {
          Error(Kind::kSafety, next.span, "a message hands nothing on, so it ends a pipeline");
        }
      }
    }
  }

  void CheckByName(const TensorGraph& graph, const Reference& next) {
    const Receiver receiver = *FindReceiver(next.name);
    for (const Receiver::Slot& slot : receiver.slots) {
      const auto& outputs = graph.graph.outputs();
      const auto output = std::find_if(outputs.begin(), outputs.end(),
                                       [&](const auto& o) { return o.name == slot.name; });
      if (output == outputs.end()) {
        Error(Kind::kSafety, next.span,
              "'" + next.name + "' takes '" + slot.name + "', which is no output of '" +
                  graph.name + "'")
            .With({receiver.span, "'" + next.name + "' is declared here"});
        continue;
      }
      const tensor::Node& node = graph.graph.node(output->node);
      const Type type{node.dtype, node.shape};
      if (type == slot.type) continue;
      Error(Kind::kSafety, next.span,
            "output '" + slot.name + "' of '" + graph.name + "' is " + Text(type) + ", but '" +
                next.name + "' takes " + Text(slot.type))
          .With({receiver.span, "'" + next.name + "' is declared here"});
    }
  }

  // ---- Window separation --------------------------------------------------------------------

  void CheckWindows() {
    for (const TensorGraph& graph : program_.graphs) {
      for (const auto& [actor_name, window_name] : graph.reads) {
        const Actor* actor = FindActor(program_, actor_name);
        const Window* window = FindWindow(*actor, window_name);
        const bool granted = std::any_of(window->readers.begin(), window->readers.end(),
                                         [&](const Reference& r) { return r.name == graph.name; });
        if (!granted) {
          Error(Kind::kSafety, graph.span,
                "tensor graph '" + graph.name + "' reads window '" + actor_name + "." +
                    window_name + "', which does not name it as a reader")
              .With({window->span, "the window is declared here"})
              .Fix("add '" + graph.name + "' to its readers(...)");
        }
        for (const Pipeline& pipeline : program_.pipelines) CheckOrder(pipeline, graph, *actor);
      }
    }
    for (const Phase& phase : program_.schedule.phases) CheckEvaluation(phase);
  }

  // Within a step the chain of dependencies must finish the reader before the message arrives; the
  // actor then holds back the next step's reader. A reader behind the message has no such fence.
  void CheckOrder(const Pipeline& pipeline, const TensorGraph& graph, const Actor& actor) {
    std::optional<size_t> written;
    for (size_t i = 0; i < pipeline.links.size(); ++i) {
      const auto handler = FindHandler(program_, pipeline.links[i].name);
      if (handler && handler->actor == &actor) written = i;
      if (pipeline.links[i].name != graph.name || !written) continue;
      Error(Kind::kSafety, pipeline.links[i].span,
            "'" + graph.name + "' may read actor '" + actor.name + "' while '" +
                pipeline.links[*written].name + "' changes it")
          .With({pipeline.links[*written].span, "the message is sent here, before the reader"});
    }
  }

  // An evaluation runs while the training pipeline of the phase rests; it must leave the state as
  // it is, and may read it.
  void CheckEvaluation(const Phase& phase) {
    if (phase.eval.empty()) return;
    for (const Reference& link : FindPipeline(program_, phase.eval)->links) {
      if (!FindHandler(program_, link.name)) continue;
      Error(Kind::kSafety, link.span,
            "pipeline '" + phase.eval + "' evaluates phase '" + phase.name +
                "', but sends a message that changes an actor's state")
          .With({phase.span, "the phase is declared here"});
    }
  }

  // ---- Shape propagation --------------------------------------------------------------------

  void CheckStateTypes() {
    const auto same = [&](const tensor::Graph& graph, NodeId id, const StateField& field,
                          Span span) {
      const tensor::Node& node = graph.node(id);
      const Type used{node.dtype, node.shape};
      const Type declared{field.dtype, field.shape};
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

  const StateField* WindowField(const TensorGraph& graph, const std::string& name) const {
    for (const auto& [actor_name, window_name] : graph.reads) {
      const Actor* actor = FindActor(program_, actor_name);
      const std::vector<std::string>& fields = FindWindow(*actor, window_name)->fields;
      if (std::find(fields.begin(), fields.end(), name) != fields.end()) {
        return FindState(*actor, name);
      }
    }
    return nullptr;
  }

  // ---- Region provenance --------------------------------------------------------------------

  std::string MemoriesText(uint32_t node) const {
    std::string text;
    for (uint32_t memory : LocalMemories(system(), node)) {
      text += (text.empty() ? "'" : ", '") + NodeName(memory) + "'";
    }
    return text.empty() ? "no memory" : text;
  }

  bool IsLocal(uint32_t node, uint32_t region) const {
    const auto memories = LocalMemories(system(), node);
    return std::find(memories.begin(), memories.end(), region) != memories.end();
  }

  void CheckRegions() {
    for (const Stage& stage : program_.stages) {
      const auto buffers = BuffersOf(stage);
      for (const auto& [name, buffer] : buffers) {
        if (HoldsBuffers(system().nodes[buffer.region])) continue;
        Error(Kind::kConsistency, buffer.span,
              "'" + name + "' is on '" + NodeName(buffer.region) + "', which holds no buffers");
      }
      for (const Statement& s : stage.body) {
        if (s.kind == StatementKind::kRead && !LocalMemories(system(), stage.node).empty() &&
            !IsLocal(stage.node, buffers.at(s.buffer).region)) {
          Error(Kind::kConsistency, s.span,
                "stage '" + stage.name + "' runs on '" + NodeName(stage.node) +
                    "' and decodes into " + MemoriesText(stage.node) + ", not into buf<" +
                    NodeName(buffers.at(s.buffer).region) + ">")
              .With({buffers.at(s.buffer).span, "'" + s.buffer + "' is allocated here"});
        }
        if (s.kind == StatementKind::kForward) CheckForwardRegions(s, buffers);
      }
    }
    // A graph hands its outputs over where it left them.
    for (const Pipeline& pipeline : program_.pipelines) {
      for (size_t i = 0; i + 1 < pipeline.links.size(); ++i) {
        const TensorGraph* graph = FindGraph(program_, pipeline.links[i].name);
        if (graph == nullptr) continue;
        const Receiver receiver = *FindReceiver(pipeline.links[i + 1].name);
        CheckGraphRegions(*graph, receiver, pipeline.links[i + 1]);
      }
    }
    for (const TensorGraph& graph : program_.graphs) {
      for (const auto& [actor_name, window] : graph.reads) {
        const Actor* actor = FindActor(program_, actor_name);
        if (Share(graph.node, actor->node)) continue;
        Error(Kind::kConsistency, graph.span,
              "tensor graph '" + graph.name + "' on '" + NodeName(graph.node) +
                  "' reads the state of actor '" + actor_name + "' on '" + NodeName(actor->node) +
                  "', but they share no memory")
            .With({actor->span, "the actor is declared here"});
      }
    }
  }

  bool Share(uint32_t a, uint32_t b) const {
    const auto memories = LocalMemories(system(), a);
    return std::any_of(memories.begin(), memories.end(),
                       [&](uint32_t memory) { return IsLocal(b, memory); });
  }

  void CheckForwardRegions(const Statement& s, const std::map<std::string, BufferInfo>& buffers) {
    const Receiver receiver = *FindReceiver(TargetOf(s));
    for (size_t i = 0; i < s.buffers.size() && i < receiver.slots.size(); ++i) {
      const BufferInfo& buffer = buffers.at(s.buffers[i]);
      const auto expected = receiver.slots[i].region;
      if (expected ? buffer.region == *expected : IsLocal(receiver.node, buffer.region)) continue;
      const std::string wanted = expected ? "buf<" + NodeName(*expected) + ">"
                                          : "a buffer in " + MemoriesText(receiver.node) +
                                                ", next to '" + NodeName(receiver.node) + "'";
      Error(Kind::kConsistency, s.span,
            "'" + s.buffers[i] + "' is buf<" + NodeName(buffer.region) + ">, but '" + TargetOf(s) +
                "' takes " + wanted)
          .With({buffer.span, "'" + s.buffers[i] + "' gets its region here"})
          .Fix("copy it to a buffer there first");
    }
  }

  void CheckGraphRegions(const TensorGraph& graph, const Receiver& receiver,
                         const Reference& next) {
    for (const Receiver::Slot& slot : receiver.slots) {
      const bool ok =
          slot.region ? IsLocal(graph.node, *slot.region) : Share(graph.node, receiver.node);
      if (ok) continue;
      Error(Kind::kConsistency, next.span,
            "'" + slot.name + "' is made in " + MemoriesText(graph.node) + " by '" + graph.name +
                "' on '" + NodeName(graph.node) + "', where '" + next.name + "' on '" +
                NodeName(receiver.node) + "' cannot reach it")
          .Fix("put a stage between them that copies it");
      return;
    }
  }

  // ---- Buffer conservation ------------------------------------------------------------------

  // A stage's body has one path, from its first statement to its last.
  void CheckConservation() {
    for (const Stage& stage : program_.stages) {
      const auto buffers = BuffersOf(stage);
      std::map<std::string, Span> consumed;
      std::set<std::string> live;
      std::set<std::string> filled;
      std::string path = "entry";
      for (const BufferParam& p : stage.params) {
        live.insert(p.name);
        filled.insert(p.name);
      }
      for (const Statement& s : stage.body) {
        path += " -> " + PrintStatement(s);
        const auto use = [&](const std::string& name) {
          if (live.contains(name)) return true;
          if (consumed.contains(name)) {
            Error(Kind::kSafety, s.span, "'" + name + "' is used after it is gone")
                .With({consumed.at(name), "it is handed over or dropped here"});
          } else {
            Error(Kind::kSafety, s.span, "'" + name + "' is used before it is allocated");
          }
          return false;
        };
        const auto take = [&](const std::string& name) {
          if (!use(name)) return;
          live.erase(name);
          consumed[name] = s.span;
        };
        switch (s.kind) {
          case StatementKind::kAlloc:
            live.insert(s.buffer);
            break;
          case StatementKind::kRead:
            if (use(s.buffer)) filled.insert(s.buffer);
            break;
          case StatementKind::kCopy:
            if (use(s.source) && use(s.buffer)) filled.insert(s.buffer);
            break;
          case StatementKind::kForward:
            for (const std::string& name : s.buffers) {
              if (live.contains(name) && !filled.contains(name)) {
                Error(Kind::kSafety, s.span, "'" + name + "' is forwarded before it is filled")
                    .With({buffers.at(name).span, "it is allocated here"});
              }
              take(name);
            }
            break;
          case StatementKind::kDrop:
            take(s.buffer);
            break;
        }
      }
      for (const std::string& name : live) {
        Error(
            Kind::kLiveness, buffers.at(name).span,
            "buffer '" + name + "' of stage '" + stage.name + "' is neither forwarded nor dropped")
            .With({stage.span, "on the path " + path + " -> end"})
            .Fix("forward it, or end with Drop(" + name + ")");
      }
    }
  }

  // ---- Tensor reachability ------------------------------------------------------------------

  void CheckReachability() {
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

  void CheckReachable(const tensor::Graph& graph, const std::vector<std::string>& args,
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
      const bool has_user = std::any_of(
          graph.nodes().begin() + id, graph.nodes().end(), [&](const tensor::Node& user) {
            return std::find(user.inputs.begin(), user.inputs.end(), id) != user.inputs.end();
          });
      if (has_user) continue;
      Error(Kind::kLiveness, node.span.known() ? node.span : fallback,
            std::string(input ? "argument" : "value") + " '" + node.name + "' of " + where +
                " serves no output");
    }
  }

  // ---- Persistent memory --------------------------------------------------------------------

  void CheckPersistentMemory() {
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

  // ---- Finiteness ---------------------------------------------------------------------------

  void CheckFiniteness() {
    for (const Pipeline& pipeline : program_.pipelines) {
      std::map<std::string, Span> seen;
      for (const Reference& link : pipeline.links) {
        const auto [it, fresh] = seen.emplace(link.name, link.span);
        if (fresh) continue;
        Error(Kind::kResourceBound, link.span,
              "pipeline '" + pipeline.name + "' comes back to '" + link.name +
                  "': it would never end")
            .With({it->second, "it is here already"});
      }
    }
    // Stages forward to stages: a depth-first search for a way back, without recursion.
    std::map<std::string, int> state;  // 1: on the path, 2: done
    for (const Stage& root : program_.stages) {
      if (state[root.name] != 0) continue;
      std::vector<std::pair<const Stage*, size_t>> path = {{&root, 0}};
      state[root.name] = 1;
      while (!path.empty()) {
        auto& [stage, next] = path.back();
        if (next == stage->body.size()) {
          state[stage->name] = 2;
          path.pop_back();
          continue;
        }
        const Statement& s = stage->body[next++];
        if (s.kind != StatementKind::kForward) continue;
        const Stage* target = FindStage(program_, TargetOf(s));
        if (target == nullptr || state[target->name] == 2) continue;
        if (state[target->name] == 1) {
          Error(Kind::kResourceBound, s.span,
                "stage '" + stage->name + "' forwards to '" + target->name +
                    "', which forwards to it again: a buffer would circle for ever")
              .With({target->span, "'" + target->name + "' is declared here"});
          continue;
        }
        state[target->name] = 1;
        path.emplace_back(target, 0);
      }
    }
  }

  const Program& program_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool Verify(const Program& program, Diagnostics& diagnostics) {
  return Verifier(program, diagnostics).Run();
}

}  // namespace l3c::l1
