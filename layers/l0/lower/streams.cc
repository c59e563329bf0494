#include "layers/l0/lower/streams.h"

#include <algorithm>
#include <string>
#include <utility>

namespace l3c::l0::lower {
namespace {

// Of the stages that draw batches; of the graphs, where none does.
uint32_t LoadingNode(const l1::Program& program) {
  uint32_t node = program.graphs.empty() ? 0 : program.graphs.front().node;
  for (const l1::Stage& stage : program.stages) {
    if (stage.samples) node = stage.node;
  }
  return node;
}

int64_t Depth(const l1::Program& program) {
  return std::max<int64_t>(1, program.schedule.pipeline_depth);
}

std::string Counted(int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

StreamPlan InferStreams(const l1::Program& program, const std::set<uint32_t>& memories,
                        bool one_of_each) {
  const l1::System& system = program.system;
  const l1::SystemNode& loading = system.nodes[LoadingNode(program)];
  const uint32_t computing = program.graphs.empty() ? 0 : program.graphs.front().node;
  const int64_t loaders =
      one_of_each ? 1 : std::min(Depth(program), std::max<int64_t>(1, loading.cores));
  StreamPlan plan;
  for (int64_t k = 0; k < loaders; ++k) {
    plan.loaders.push_back(static_cast<StreamId>(plan.streams.size()));
    const std::string name = loaders == 1 ? "loader" : "loader_" + std::to_string(k);
    plan.streams.push_back({name, StreamKind::kLoader, loading.name, {}});
  }
  const auto compute = [&](const std::string& name, uint32_t node) {
    plan.streams.push_back({name, StreamKind::kCompute, system.nodes[node].name, {}});
    return static_cast<StreamId>(plan.streams.size() - 1);
  };
  const auto in_memory = [&](uint32_t node) { return l1::MemoryOf(system, node); };
  const uint32_t first = in_memory(computing);
  std::map<uint32_t, uint32_t> others;  // by memory: the node that works there
  const auto add = [&](uint32_t node) {
    const uint32_t memory = in_memory(node);
    if (memory != first && memories.contains(memory)) others.try_emplace(memory, node);
  };
  if (!one_of_each) {
    for (const l1::TensorGraph& graph : program.graphs) add(graph.node);
    for (const l1::Actor& actor : program.actors) add(actor.node);
    for (const l1::Stage& stage : program.stages) add(stage.node);
  }
  const auto named = [&](uint32_t node) {
    return others.empty() ? "compute" : "compute_" + system.nodes[node].name;
  };
  plan.compute = compute(named(computing), computing);
  for (const auto& [memory, node] : others) plan.of_memory[memory] = compute(named(node), node);
  return plan;
}

search::Decision ExplainStreams(const l1::Program& program, const Plan& plan, bool one_of_each,
                                const search::CostVector& cost) {
  const auto count = [&](StreamKind kind) {
    return std::count_if(plan.streams.begin(), plan.streams.end(),
                         [&](const Stream& stream) { return stream.kind == kind; });
  };
  const int64_t loaders = count(StreamKind::kLoader), transfers = count(StreamKind::kTransfer);
  search::Decision decision;
  decision.id = kStreamsId;
  decision.chosen = one_of_each ? kOneOfEach : kInferred;
  decision.forced = one_of_each;
  decision.cost = cost;
  search::Loser other;
  other.label = one_of_each ? kInferred : kOneOfEach;
  other.cost = cost;
  other.difference = search::Difference(cost, cost);
  other.decided_by = "the overlap of batches, which is in no kernel's cost";
  decision.losers.push_back(std::move(other));
  const std::string there = Counted(loaders, "loader") + ", " +
                            Counted(count(StreamKind::kCompute), "compute stream") +
                            (transfers > 0 ? ", " + Counted(transfers, "transfer stream") : "");
  const l1::SystemNode& loading = program.system.nodes[LoadingNode(program)];
  const std::string depth = std::to_string(Depth(program));
  const std::string cores = Counted(std::max<int64_t>(1, loading.cores), "core");
  decision.pruned.push_back(
      {"more loaders than " + std::to_string(loaders),
       one_of_each ? "as forced"
       : loaders < Depth(program)
           ? depth + " batches may be in flight, but " + loading.name + " has " + cores
           : "pipeline_depth: " + depth + " lets as many batches be in flight",
       0});
  decision.pruned.push_back({"more than " + there.substr(there.find(", ") + 2),
                             "a step reads the state that the step before leaves, and a node's "
                             "kernels take all threads",
                             0});
  return decision;
}

}  // namespace l3c::l0::lower
