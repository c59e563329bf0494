// A batch shared by nodes that each have the state: gradients go round in a ring (gradient_ring.h).
#include <algorithm>
#include <utility>

#include "layers/l1/gradient_ring.h"
#include "layers/l1/pipeline_writer.h"

namespace l3c::l1 {

namespace {

std::string NodeName(const std::string& name, size_t node) {
  return node == 0 ? name : name + "_" + std::to_string(node);
}

// No computation's own name begins with a number: `reduce_2_train` is of no other than `train`.
std::string ReduceName(const std::string& computation, size_t node) {
  return NodeName("reduce", node) + "_" + computation;
}

}  // namespace

std::string ReplicaName(const std::string& actor, size_t node) { return NodeName(actor, node); }

std::vector<std::pair<std::string, std::string>> PipelineWriter::WindowsAt(
    const Computation& computation, size_t node) {
  std::vector<std::pair<std::string, std::string>> windows;
  for (const auto& [actor, window] : computation.windows) {
    windows.emplace_back(ReplicaName(actor, node), window);
  }
  return windows;
}

void PipelineWriter::AddRing(const std::string& name, Stage loader, const Computation& computation,
                             const RowShares& shares) {
  const size_t nodes = place_.model.size();
  const Buckets buckets = BucketsOf(shares);
  BeginShared(name, std::move(loader), computation, shares);
  for (size_t p = 0; p < nodes; ++p) {
    AddGraph(Numbered(computation.name, p), shares.parts[p], place_.model[p],
             WindowsAt(computation, p), false);
    Gives(shares.parts[p], place_.resident[p]);
  }
  for (size_t hop = 1; hop < nodes; ++hop) AddRingHop(name, shares, buckets, hop);
  std::vector<SharedGraph> rest = {shares.rest};
  const SharedGraph silent = WithoutOutputs(shares.rest, computation.reported);
  for (size_t p = 1; p < nodes; ++p) rest.push_back(silent);
  AddStage(Spread(name, shares, buckets, rest));
  for (size_t p = 0; p < nodes; ++p) {
    AddGraph(ReduceName(name, p), rest[p], place_.model[p], WindowsAt(computation, p),
             false);
    for (const std::string& message : computation.messages) {
      const size_t dot = message.find('.');
      pipeline_.links.push_back({ReplicaName(message.substr(0, dot), p) + message.substr(dot), {}});
    }
  }
  program_.pipelines.push_back(std::move(pipeline_));
}

// Every bucket moves on by one node, which adds its own.
void PipelineWriter::AddRingHop(const std::string& name, const RowShares& shares,
                                const Buckets& buckets, size_t hop) {
  const size_t nodes = buckets.size();
  Stage stage = OnLoader(Numbered("ring_" + name, hop));
  StageBody body;
  std::vector<std::pair<SharedGraph, size_t>> adds;  // by bucket, with the node that adds
  for (size_t b = 0; b < nodes; ++b) {
    if (buckets[b].empty()) continue;
    const size_t node = (b + hop) % nodes;
    adds.emplace_back(AddHop(shares, buckets, b, hop), node);
    body.Forward(Numbered(Numbered("add_" + name, hop), node));
    for (const std::string& arg : adds.back().first.args) {
      const tensor::Graph& graph = adds.back().first.graph;
      const tensor::Node& value = graph.node(*graph.Find(arg));
      const TensorType type{value.dtype, value.shape};
      const uint32_t memory = place_.resident[node];
      stage.params.push_back({arg, at_.at(arg), type.dtype, type.shape, {}});
      body.AddToForward(at_.at(arg) == memory ? arg : body.Carry(arg, memory, type));
    }
  }
  body.AppendTo(stage);
  AddStage(std::move(stage));
  for (const auto& [graph, node] : adds) {
    AddGraph(Numbered(Numbered("add_" + name, hop), node), graph, place_.model[node], {}, false);
    Gives(graph, place_.resident[node]);
  }
}

// What is whole goes on round the ring, a copy for every node; and with it what all take that was
// computed from the whole batch.
Stage PipelineWriter::Spread(const std::string& name, const RowShares& shares,
                             const Buckets& buckets, const std::vector<SharedGraph>& rest) const {
  const size_t nodes = buckets.size();
  Stage stage = OnLoader("spread_" + name);
  StageBody body;
  std::vector<std::map<std::string, std::string>> here(nodes);  // by node: argument, buffer
  for (size_t hop = 0; hop < nodes; ++hop) {
    for (size_t b = 0; b < nodes; ++b) {
      const size_t node = (b + nodes - 1 + hop) % nodes;
      for (size_t sum : buckets[b]) {
        const TensorType type = TypeOfSum(shares, sum);
        const std::string& arg = shares.sums[sum].name;
        if (hop == 0) {
          here[node][arg] = PartialName(shares, sum, b, nodes - 1);
          stage.params.push_back(
              {here[node][arg], place_.resident[node], type.dtype, type.shape, {}});
        } else {
          const std::string& from = here[(node + nodes - 1) % nodes].at(arg);
          here[node][arg] = Numbered(arg + "_at", node);
          body.Alloc(here[node][arg], place_.resident[node], type);
          body.Copy(here[node][arg], from);
        }
      }
    }
  }
  for (const std::string& arg : rest[0].args) {
    if (here[0].contains(arg)) continue;
    const tensor::Node& value = rest[0].graph.node(*rest[0].graph.Find(arg));
    const TensorType type{value.dtype, value.shape};
    stage.params.push_back({arg, at_.at(arg), type.dtype, type.shape, {}});
    body.Drop(arg);
    for (size_t p = 0; p < nodes; ++p) {
      const std::vector<std::string>& taken = rest[p].args;
      if (std::find(taken.begin(), taken.end(), arg) == taken.end()) continue;
      here[p][arg] = body.CopyTo(arg, Numbered("_at", p), place_.resident[p], type);
    }
  }
  for (size_t p = 0; p < nodes; ++p) {
    body.Forward(ReduceName(name, p));
    for (const std::string& arg : rest[p].args) {
      body.AddToForward(here[p].at(arg));
      here[p].erase(arg);
    }
    for (const auto& [arg, unused] : here[p]) body.Drop(unused);
  }
  body.AppendTo(stage);
  return stage;
}

}  // namespace l3c::l1
