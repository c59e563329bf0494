// How buffers go: signatures, regions, conservation, and that none goes round in a circle.
#include <algorithm>
#include <set>
#include <utility>

#include "layers/l1/verifier.h"

namespace l3c::l1 {

using support::Kind;
using tensor::DType;

namespace {

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

}  // namespace

// ---- Forwarding signatures
// -----------------------------------------------------------------------

void Verifier::CheckSampling() {
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

void Verifier::CheckRead(const Stage& stage, const Statement& s, const Buffers& buffers) {
  if (!stage.samples || stage.sampling.data != s.data) {
    Error(Kind::kSafety, s.span,
          "stage '" + stage.name + "' reads '" + s.data + "', which it does not sample")
        .Fix("add sample: epoch_shuffle(" + s.data + ", split: train, batch: 128)");
    return;
  }
  TensorType expected{DType::kF32, {stage.sampling.batch}};
  if (const BoundField* field = FindField(*FindData(program_, s.data), s.field)) {
    expected.dtype = field->dtype;
    expected.shape.insert(expected.shape.end(), field->shape.begin(), field->shape.end());
  }
  const BufferInfo& buffer = buffers.at(s.buffer);
  if (buffer.type == expected) return;
  Error(Kind::kSafety, s.span,
        "a batch of '" + s.data + "." + s.field + "' is " + Text(expected) + ", but '" + s.buffer +
            "' is " + Text(buffer.type))
      .With({buffer.span, "'" + s.buffer + "' is allocated here"});
}

void Verifier::CheckForwards() {
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
void Verifier::CheckPipelineLinks() {
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
      } else if (!FindHandler(program_, next.name) && !HasBatch(pipeline, i + 1)) {
        Error(Kind::kSafety, next.span, "a message hands nothing on, so it ends a pipeline");
      } else if (FindHandler(program_, next.name)) {
        // Several messages may follow one graph; its outputs are there for all.
        for (size_t g = i; g-- > 0;) {
          const TensorGraph* before = FindGraph(program_, pipeline.links[g].name);
          if (before == nullptr) continue;
          CheckByName(*before, next);
          break;
        }
      }
    }
  }
}

// A graph behind a message computes on a batch of its own, which a stage before it forwards to it.
bool Verifier::HasBatch(const Pipeline& pipeline, size_t link) const {
  const std::string& name = pipeline.links[link].name;
  if (FindGraph(program_, name) == nullptr) return false;
  bool forwarded = false;
  for (size_t i = 0; i < link; ++i) {
    if (pipeline.links[i].name == name) return false;  // it has used its batch up
    const Stage* stage = FindStage(program_, pipeline.links[i].name);
    if (stage == nullptr) continue;
    forwarded =
        forwarded || std::any_of(stage->body.begin(), stage->body.end(), [&](const Statement& s) {
          return s.kind == StatementKind::kForward && TargetOf(s) == name;
        });
  }
  return forwarded;
}

void Verifier::CheckByName(const TensorGraph& graph, const Reference& next) {
  const Receiver receiver = *FindReceiver(next.name);
  for (const Receiver::Slot& slot : receiver.slots) {
    const auto& outputs = graph.graph.outputs();
    const auto output = std::find_if(outputs.begin(), outputs.end(),
                                     [&](const auto& o) { return o.name == slot.name; });
    if (output == outputs.end()) {
      Error(Kind::kSafety, next.span,
            "'" + next.name + "' takes '" + slot.name + "', which is no output of '" + graph.name +
                "'")
          .With({receiver.span, "'" + next.name + "' is declared here"});
      continue;
    }
    const tensor::Node& node = graph.graph.node(output->node);
    const TensorType type{node.dtype, node.shape};
    if (type == slot.type) continue;
    Error(Kind::kSafety, next.span,
          "output '" + slot.name + "' of '" + graph.name + "' is " + Text(type) + ", but '" +
              next.name + "' takes " + Text(slot.type))
        .With({receiver.span, "'" + next.name + "' is declared here"});
  }
}

// ---- Region provenance
// ---------------------------------------------------------------------------

std::string Verifier::MemoriesText(uint32_t node) const {
  std::string text;
  for (uint32_t memory : LocalMemories(system(), node)) {
    text += (text.empty() ? "'" : ", '") + NodeName(memory) + "'";
  }
  return text.empty() ? "no memory" : text;
}

bool Verifier::IsLocal(uint32_t node, uint32_t region) const {
  const auto memories = LocalMemories(system(), node);
  return std::find(memories.begin(), memories.end(), region) != memories.end();
}

void Verifier::CheckRegions() {
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

bool Verifier::Share(uint32_t a, uint32_t b) const {
  const auto memories = LocalMemories(system(), a);
  return std::any_of(memories.begin(), memories.end(),
                     [&](uint32_t memory) { return IsLocal(b, memory); });
}

void Verifier::CheckForwardRegions(const Statement& s, const Buffers& buffers) {
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

void Verifier::CheckGraphRegions(const TensorGraph& graph, const Receiver& receiver,
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

// ---- Buffer conservation
// -------------------------------------------------------------------------

// A stage's body has one path, from its first statement to its last.
void Verifier::CheckConservation() {
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
      Error(Kind::kLiveness, buffers.at(name).span,
            "buffer '" + name + "' of stage '" + stage.name + "' is neither forwarded nor dropped")
          .With({stage.span, "on the path " + path + " -> end"})
          .Fix("forward it, or end with Drop(" + name + ")");
    }
  }
}

// ---- Finiteness
// ----------------------------------------------------------------------------------

void Verifier::CheckFiniteness() {
  for (const Pipeline& pipeline : program_.pipelines) {
    std::map<std::string, Span> seen;
    for (const Reference& link : pipeline.links) {
      const auto [it, fresh] = seen.emplace(link.name, link.span);
      if (fresh) continue;
      Error(
          Kind::kResourceBound, link.span,
          "pipeline '" + pipeline.name + "' comes back to '" + link.name + "': it would never end")
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

}  // namespace l3c::l1
