// How buffers go: signatures, regions, conservation, and that none goes round in a circle.
#include <algorithm>
#include <set>
#include <utility>

#include "layers/l1/verifier.h"

namespace l3c::l1 {

using support::Kind;
using tensor::DType;

// ---- Forwarding signatures
// -----------------------------------------------------------------------

void Verifier::CheckSampling() {
  for (const Stage& stage : program_.stages) {
    if (stage.samples && !stage.params.empty()) {
      Error(Kind::kSafety, stage.span,
            "stage '" + stage.name + "' draws batches, so nothing can be forwarded to it");
    }
    const auto buffers = BuffersOf(stage);
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind == StatementKind::kRead) CheckRead(stage, s, buffers);
      if (s.kind != StatementKind::kCopy && s.kind != StatementKind::kDecode) return;
      const TensorType& to = buffers.at(s.buffer).type;
      TensorType from;
      if (const auto source = buffers.find(s.source); source != buffers.end()) {
        from = source->second.type;
      } else {
        const auto owner = index_.FindWindowField(stage.reads, s.source);
        from = {owner->field->dtype, owner->field->shape};
      }
      const bool decode = s.kind == StatementKind::kDecode;
      if (decode ? from.shape != to.shape : from != to) {
        Error(Kind::kSafety, s.span,
              "'" + s.source + "' is " + Text(from) + ", but '" + s.buffer + "' is " + Text(to));
      } else if (decode && s.scale != 1 && !tensor::IsFloat(to.dtype)) {
        Error(Kind::kSafety, s.span, "a scale makes reals, but '" + s.buffer + "' is " + Text(to));
      }
    });
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
  if (const BoundField* field = FindField(*index_.FindData(s.data), s.field)) {
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
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind != StatementKind::kForward) return;
      const Receiver receiver = *FindReceiver(TargetOf(s));
      if (s.buffers.size() != receiver.slots.size()) {
        Error(Kind::kSafety, s.span,
              "'" + TargetOf(s) + "' takes " + std::to_string(receiver.slots.size()) +
                  " buffers, not " + std::to_string(s.buffers.size()))
            .With({receiver.span, "'" + TargetOf(s) + "' is declared here"});
        return;
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
    });
  }
}

// Along a pipeline a stage hands over by forward; the outputs of the graphs before go by their
// names, of one name those of the last graph. A graph behind a message computes on a batch of its
// own, which a stage before it forwards to it.
void Verifier::CheckPipelineLinks() {
  for (const Pipeline& pipeline : program_.pipelines) {
    std::set<std::string> forwarded;  // to these, by a stage so far
    std::set<std::string> seen;
    std::vector<const TensorGraph*> graphs;  // so far, the last one first
    for (size_t i = 0; i + 1 < pipeline.links.size(); ++i) {
      const Reference& link = pipeline.links[i];
      const Reference& next = pipeline.links[i + 1];
      seen.insert(link.name);
      const bool own = forwarded.contains(next.name) && !seen.contains(next.name);
      if (const Stage* stage = index_.FindStage(link.name)) {
        bool forwards = false;
        ForEachStatement(stage->body, [&](const Statement& s) {
          if (s.kind != StatementKind::kForward) return;
          forwarded.insert(TargetOf(s));
          forwards = forwards || TargetOf(s) == next.name;
        });
        if (forwards || own) continue;
        Error(Kind::kSafety, next.span,
              "stage '" + stage->name + "' comes before '" + next.name +
                  "' in the pipeline, but does not forward to it")
            .With({stage->span, "'" + stage->name + "' is declared here"});
      } else if (const TensorGraph* here = index_.FindGraph(link.name)) {
        graphs.insert(graphs.begin(), here);
        if (!own) CheckByName(graphs, next);
      } else if (own) {
        continue;
      } else if (index_.FindHandler(next.name) == nullptr) {
        Error(Kind::kSafety, next.span, "a message hands nothing on, so it ends a pipeline");
      } else if (!graphs.empty()) {
        CheckByName(graphs, next);  // several messages may follow one graph
      }
    }
  }
}

// The graph that an output of that name comes from, and the output; nullptr where none has one.
std::pair<const TensorGraph*, const tensor::Output*> Verifier::Producer(
    const std::vector<const TensorGraph*>& graphs, std::string_view name) {
  for (const TensorGraph* graph : graphs) {
    for (const tensor::Output& output : graph->graph.outputs()) {
      if (output.name == name) return {graph, &output};
    }
  }
  return {nullptr, nullptr};
}

void Verifier::CheckByName(const std::vector<const TensorGraph*>& graphs, const Reference& next) {
  const Receiver receiver = *FindReceiver(next.name);
  for (const Receiver::Slot& slot : receiver.slots) {
    const auto [graph, output] = Producer(graphs, slot.name);
    if (output == nullptr) {
      Error(Kind::kSafety, next.span,
            "'" + next.name + "' takes '" + slot.name + "', which is no output of '" +
                graphs.front()->name + "'")
          .With({receiver.span, "'" + next.name + "' is declared here"});
      continue;
    }
    const tensor::Node& node = graph->graph.node(output->node);
    const TensorType type{node.dtype, node.shape};
    if (type == slot.type) continue;
    Error(Kind::kSafety, next.span,
          "output '" + slot.name + "' of '" + graph->name + "' is " + Text(type) + ", but '" +
              next.name + "' takes " + Text(slot.type))
        .With({receiver.span, "'" + next.name + "' is declared here"});
  }
}

// ---- Region provenance
// ---------------------------------------------------------------------------

std::string Verifier::MemoriesText(uint32_t node) const {
  std::string text;
  for (uint32_t memory : topology_.LocalMemories(node)) {
    text += (text.empty() ? "'" : ", '") + NodeName(memory) + "'";
  }
  return text.empty() ? "no memory" : text;
}

void Verifier::CheckRegions() {
  for (const Stage& stage : program_.stages) {
    const auto buffers = BuffersOf(stage);
    for (const auto& [name, buffer] : buffers) {
      if (HoldsBuffers(system().nodes[buffer.region])) continue;
      Error(Kind::kConsistency, buffer.span,
            "'" + name + "' is on '" + NodeName(buffer.region) + "', which holds no buffers");
    }
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind == StatementKind::kForward) {
        CheckForwardRegions(s, buffers);
      } else if (!topology_.LocalMemories(stage.node).empty()) {
        CheckStageRegions(stage, s, buffers);
      }
    });
  }
  // A graph hands its outputs over where it left them.
  for (const Pipeline& pipeline : program_.pipelines) {
    std::vector<const TensorGraph*> graphs;  // so far, the last one first
    std::set<std::string> forwarded;         // to these, by a stage so far: checked there
    for (size_t i = 0; i + 1 < pipeline.links.size(); ++i) {
      const Reference& next = pipeline.links[i + 1];
      if (const Stage* stage = index_.FindStage(pipeline.links[i].name)) {
        ForEachStatement(stage->body, [&](const Statement& s) {
          if (s.kind == StatementKind::kForward) forwarded.insert(TargetOf(s));
        });
      }
      const TensorGraph* graph = index_.FindGraph(pipeline.links[i].name);
      if (graph == nullptr) continue;
      graphs.insert(graphs.begin(), graph);
      if (!forwarded.contains(next.name)) {
        CheckGraphRegions(graphs, *FindReceiver(next.name), next);
      }
    }
  }
  for (const TensorGraph& graph : program_.graphs) {
    for (const auto& [actor_name, window] : graph.reads) {
      const Actor* actor = index_.FindActor(actor_name);
      if (topology_.Share(graph.node, actor->node)) continue;
      Error(Kind::kConsistency, graph.span,
            "tensor graph '" + graph.name + "' on '" + NodeName(graph.node) +
                "' reads the state of actor '" + actor_name + "' on '" + NodeName(actor->node) +
                "', but they share no memory")
          .With({actor->span, "the actor is declared here"});
    }
  }
}

// A stage reads, decodes and looks at what its node can reach; it copies anything.
void Verifier::CheckStageRegions(const Stage& stage, const Statement& s, const Buffers& buffers) {
  const auto reach = [&](const std::string& name, const std::string& verb, const std::string& to) {
    const auto buffer = buffers.find(name);
    if (buffer == buffers.end() || IsLocal(stage.node, buffer->second.region)) return true;
    Error(Kind::kConsistency, s.span,
          "stage '" + stage.name + "' runs on '" + NodeName(stage.node) + "' and " + verb + " " +
              to + " " + MemoriesText(stage.node) + ", not " + to + " buf<" +
              NodeName(buffer->second.region) + ">")
        .With({buffer->second.span, "'" + name + "' is allocated here"});
    return false;
  };
  if (s.kind == StatementKind::kRead) reach(s.buffer, "decodes", "into");
  if (s.kind == StatementKind::kDecode && reach(s.buffer, "decodes", "into")) {
    reach(s.source, "looks", "at");
  }
  for (tensor::NodeId input : s.value.inputs()) {
    const std::string& name = s.value.node(input).name;
    if (!reach(name, "looks", "at")) return;
    const auto owner = index_.FindWindowField(stage.reads, name);
    if (buffers.contains(name) || !owner || topology_.Share(stage.node, owner->actor->node)) {
      continue;
    }
    Error(Kind::kConsistency, s.span,
          "stage '" + stage.name + "' on '" + NodeName(stage.node) +
              "' looks at the state of actor '" + owner->actor->name + "' on '" +
              NodeName(owner->actor->node) + "', but they share no memory")
        .With({owner->actor->span, "the actor is declared here"})
        .Fix("copy it to a buffer there first");
  }
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

void Verifier::CheckGraphRegions(const std::vector<const TensorGraph*>& graphs,
                                 const Receiver& receiver, const Reference& next) {
  for (const Receiver::Slot& slot : receiver.slots) {
    const TensorGraph* graph = Producer(graphs, slot.name).first;
    if (graph == nullptr) graph = graphs.front();
    const bool ok = slot.region ? IsLocal(graph->node, *slot.region)
                                : topology_.Share(graph->node, receiver.node);
    if (ok) continue;
    Error(Kind::kConsistency, next.span,
          "'" + slot.name + "' is made in " + MemoriesText(graph->node) + " by '" + graph->name +
              "' on '" + NodeName(graph->node) + "', where '" + next.name + "' on '" +
              NodeName(receiver.node) + "' cannot reach it")
        .Fix("put a stage between them that copies it");
    return;
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
  // What hands over to what: stages by forwarding, graphs by the names of their outputs. A message
  // ends a chain, since state is read in the next step.
  struct Way {
    std::string to;
    Span span;
  };
  std::map<std::string, std::vector<Way>> ways;
  std::vector<std::string> units;
  for (const Stage& stage : program_.stages) {
    units.push_back(stage.name);
    ForEachStatement(stage.body, [&](const Statement& s) {
      if (s.kind == StatementKind::kForward && s.handler.empty()) {
        ways[stage.name].push_back({s.target, s.span});
      }
    });
  }
  for (const TensorGraph& graph : program_.graphs) units.push_back(graph.name);
  for (const Pipeline& pipeline : program_.pipelines) {
    const std::vector<Reference> links =
        flows_.IsRun(pipeline) ? flows_.LinksOf(pipeline) : pipeline.links;
    for (size_t i = 0; i + 1 < links.size(); ++i) {
      if (index_.FindGraph(links[i].name) == nullptr) continue;
      if (index_.FindHandler(links[i + 1].name) != nullptr) continue;
      ways[links[i].name].push_back({links[i + 1].name, links[i + 1].span});
    }
  }
  // A depth-first search for a way back, without recursion.
  enum class Mark : uint8_t { kNew, kOnPath, kDone };
  std::map<std::string, Mark> marks;
  for (const std::string& root : units) {
    if (marks[root] != Mark::kNew) continue;
    std::vector<std::pair<std::string, size_t>> path = {{root, 0}};
    marks[root] = Mark::kOnPath;
    while (!path.empty()) {
      const std::string unit = path.back().first;
      const std::vector<Way>& from = ways[unit];
      if (path.back().second == from.size()) {
        marks[unit] = Mark::kDone;
        path.pop_back();
        continue;
      }
      const Way& way = from[path.back().second++];
      Mark& mark = marks[way.to];
      if (mark == Mark::kNew) {
        mark = Mark::kOnPath;
        path.emplace_back(way.to, 0);
      } else if (mark == Mark::kOnPath) {
        ReportRound(path, way.to, way.span);
      }
    }
  }
}

void Verifier::ReportRound(const std::vector<std::pair<std::string, size_t>>& path,
                           const std::string& to, Span span) {
  constexpr size_t kMaxNamed = 12;
  size_t begin = path.size();
  while (path[begin - 1].first != to) --begin;
  --begin;
  std::string round;
  for (size_t i = begin; i < path.size(); ++i) {
    if (i - begin < kMaxNamed) round += path[i].first + " -> ";
    if (i - begin == kMaxNamed) round += "… -> ";
  }
  const std::string& last = path.back().first;
  const bool stage = index_.FindStage(last) != nullptr;
  Error(Kind::kResourceBound, span,
        (stage ? "stage '" + last + "' forwards to '"
               : "tensor graph '" + last + "' hands over to '") +
            to + "', which comes back to it: a buffer would circle for ever")
      .With({FindReceiver(to)->span, "'" + to + "' is declared here"})
      .With({{}, "round and round: " + round + to});
}

}  // namespace l3c::l1
