#include "layers/l1/model_stages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "layers/l1/graph_work.h"

namespace l3c::l1 {

using tensor::Graph;
using tensor::Node;
using tensor::NodeId;
using tensor::Op;
using tensor::OpClass;

namespace {

constexpr size_t kNoLayer = static_cast<size_t>(-1);

double BytesOf(const Node& node) {
  return static_cast<double>(tensor::NumElements(node.shape)) *
         static_cast<double>(tensor::SizeOf(node.dtype));
}

// What outputs of a graph need.
std::vector<bool> Needed(const Graph& graph, const std::set<std::string>& outputs) {
  std::vector<bool> needed(graph.size());
  for (const tensor::Output& output : graph.outputs()) {
    if (outputs.contains(output.name)) needed[output.node] = true;
  }
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (NodeId input : graph.node(id).inputs) needed[input] = true;
  }
  return needed;
}

}  // namespace

ModelStages::ModelStages(const RowShares& shares, const std::set<std::string>& reported)
    : shares_(shares), graph_(shares.parts[0].graph) {
  FindForward(reported);
  FindForwardLayers();
  FindBackwardLayers();
  MergeLayers();
  Measure();
}

void ModelStages::FindForward(const std::set<std::string>& reported) {
  of_batch_.assign(graph_.size(), false);
  const std::vector<std::string>& args = shares_.parts[0].args;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    of_batch_[id] =
        node.op == Op::kInput && std::find(args.begin(), args.end(), node.name) != args.end();
    for (NodeId input : node.inputs) of_batch_[id] = of_batch_[id] || of_batch_[input];
  }
  // Through what stands behind the sums.
  const Graph& rest = shares_.rest.graph;
  const std::vector<bool> needed = Needed(rest, reported);
  std::set<std::string> roots;
  for (const RowShares::Sum& sum : shares_.sums) {
    if (needed[*rest.Find(sum.name)]) roots.insert(sum.parts[0]);
  }
  forward_ = Needed(graph_, roots);
}

bool ModelStages::StartsLayer(const Node& node) const {
  if (node.op == Op::kGather) return !of_batch_[node.inputs[0]] && of_batch_[node.inputs[1]];
  return node.op == Op::kMatmul && of_batch_[node.inputs[0]] != of_batch_[node.inputs[1]];
}

void ModelStages::FindForwardLayers() {
  layer_.assign(graph_.size(), kNoLayer);
  std::vector<size_t> begun(graph_.size(), 0);  // layers, so far
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!forward_[id] || !of_batch_[id]) continue;
    for (NodeId input : node.inputs) begun[id] = std::max(begun[id], begun[input]);
    if (StartsLayer(node)) ++begun[id];
    layer_[id] = begun[id] == 0 ? 0 : begun[id] - 1;
  }
  // A parameter belongs to the first layer that reads it; what is computed of parameters alone, to
  // the last layer of those in it.
  std::vector<size_t> first(graph_.size(), kNoLayer);
  for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
    if (!forward_[id]) continue;
    const size_t at = of_batch_[id] ? layer_[id] : first[id];
    for (NodeId input : graph_.node(id).inputs) {
      if (!of_batch_[input]) first[input] = std::min(first[input], at);
    }
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (of_batch_[id]) continue;
    const Node& node = graph_.node(id);
    if (node.op == Op::kInput) {
      layer_[id] = first[id] == kNoLayer ? 0 : first[id];
      continue;
    }
    for (NodeId input : node.inputs) {
      if (layer_[input] == kNoLayer) continue;
      layer_[id] = layer_[id] == kNoLayer ? layer_[input] : std::max(layer_[id], layer_[input]);
    }
  }
}

void ModelStages::FindBackwardLayers() {
  // Where each sum is wanted: in the layer of the parameter whose gradient it leads to.
  const Graph& rest = shares_.rest.graph;
  std::map<std::string, size_t> wanted;  // by part of a sum
  for (const tensor::Output& output : rest.outputs()) {
    const std::string& name = output.name;
    if (!name.ends_with("_grad")) continue;
    const auto parameter = graph_.Find(name.substr(0, name.size() - 5));
    const size_t layer = parameter && layer_[*parameter] != kNoLayer ? layer_[*parameter] : 0;
    const std::vector<bool> needed = Needed(rest, {name});
    for (const RowShares::Sum& sum : shares_.sums) {
      if (!needed[*rest.Find(sum.name)]) continue;
      size_t& at = wanted[sum.parts[0]];
      at = std::max(at, layer);
    }
  }
  std::vector<size_t> least(graph_.size(), 0);
  for (const tensor::Output& output : graph_.outputs()) {
    const auto it = wanted.find(output.name);
    if (it != wanted.end()) least[output.node] = std::max(least[output.node], it->second);
  }
  for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
    if (!of_batch_[id] || forward_[id]) continue;
    const Node& node = graph_.node(id);
    layer_[id] = least[id];
    for (NodeId input : node.inputs) {
      if (!of_batch_[input] && layer_[input] != kNoLayer) {
        layer_[id] = std::max(layer_[id], layer_[input]);
      }
    }
    for (NodeId input : node.inputs) least[input] = std::max(least[input], layer_[id]);
  }
  // Shares and what all parts take are used where they are used.
  for (NodeId input : graph_.inputs()) {
    if (of_batch_[input] && layer_[input] == kNoLayer) layer_[input] = 0;
  }
}

// Neighbours of the least work are taken together until few enough are left.
void ModelStages::MergeLayers() {
  size_t layers = 1;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (of_batch_[id]) layers = std::max(layers, layer_[id] + 1);
  }
  std::vector<double> flops(layers, 0);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (of_batch_[id]) flops[layer_[id]] += NodeFlops(graph_, id);
  }
  std::vector<std::vector<size_t>> groups;
  for (size_t layer = 0; layer < layers; ++layer) groups.push_back({layer});
  while (groups.size() > kMaxLayers) {
    const auto work = [&](size_t g) {
      double sum = 0;
      for (size_t layer : groups[g]) sum += flops[layer];
      return sum;
    };
    size_t best = 0;
    for (size_t g = 1; g + 1 < groups.size(); ++g) {
      if (work(g) + work(g + 1) < work(best) + work(best + 1)) best = g;
    }
    groups[best].insert(groups[best].end(), groups[best + 1].begin(), groups[best + 1].end());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<size_t> group_of(layers);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t layer : groups[g]) group_of[layer] = g;
  }
  for (size_t& layer : layer_) {
    if (layer != kNoLayer) layer = group_of[layer];
  }
  work_.resize(groups.size());
}

void ModelStages::Measure() {
  const double parts = static_cast<double>(shares_.parts.size());
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!of_batch_[id]) {
      if (node.op == Op::kInput) work_[layer_[id]].parameter_bytes += BytesOf(node);
      continue;
    }
    if (node.op == Op::kInput) continue;
    work_[layer_[id]].flops += parts * NodeFlops(graph_, id);
  }
  // Over each boundary between layers a value goes once, whoever needs it beyond.
  std::vector<size_t> to_last(layer_), to_first(layer_);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!of_batch_[id]) continue;
    for (NodeId input : graph_.node(id).inputs) {
      if (!of_batch_[input]) continue;
      to_last[input] = std::max(to_last[input], layer_[id]);
      to_first[input] = std::min(to_first[input], layer_[id]);
    }
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!of_batch_[id] || graph_.node(id).op == Op::kInput) continue;
    const double bytes = parts * BytesOf(graph_.node(id));
    for (size_t l = layer_[id]; l < to_last[id]; ++l) work_[l].forward_bytes += bytes;
    for (size_t l = to_first[id]; l < layer_[id]; ++l) work_[l].backward_bytes += bytes;
  }
}

std::vector<StageUnit> ModelStages::Cut(size_t part, const std::vector<size_t>& stage_of) const {
  const Graph& graph = shares_.parts[part].graph;
  const size_t stages = stage_of.back() + 1;
  const auto unit_of = [&](NodeId id) {
    const size_t stage = stage_of[layer_[id]];
    return forward_[id] ? stage : 2 * stages - 1 - stage;
  };
  const auto is_arg = [&](NodeId id) { return of_batch_[id] && graph.node(id).op == Op::kInput; };
  // Names of what a unit hands over: a part of a sum has one already.
  std::map<NodeId, std::string> output_name;
  for (const tensor::Output& output : graph.outputs()) output_name[output.node] = output.name;
  std::set<std::string> taken;
  for (const Node& node : graph.nodes()) taken.insert(node.name);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!of_batch_[id] || is_arg(id)) continue;
    for (NodeId input : graph.node(id).inputs) {
      if (!of_batch_[input] || is_arg(input) || unit_of(input) == unit_of(id)) continue;
      const auto [it, fresh] = output_name.try_emplace(input);
      if (!fresh) continue;
      it->second = graph.node(input).name + "_" + std::to_string(part);
      while (!taken.insert(it->second).second) it->second += "_";
    }
  }
  std::vector<StageUnit> units;
  for (size_t u = 0; u < 2 * stages; ++u) {
    StageUnit unit;
    unit.backward = u >= stages;
    unit.stage = unit.backward ? 2 * stages - 1 - u : u;
    Graph to;
    std::vector<std::string> unit_args;
    std::vector<NodeId> ids(graph.size());
    std::vector<bool> here(graph.size());
    const auto add_arg = [&](NodeId id, const std::string& name) {
      const Node& node = graph.node(id);
      unit_args.push_back(name);
      ids[id] = to.AddInput(name, node.dtype, node.shape, node.span);
      here[id] = true;
    };
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!of_batch_[id] || is_arg(id) || unit_of(id) != u) continue;
      for (NodeId input : graph.node(id).inputs) {
        if (here[input] || !of_batch_[input]) continue;
        if (is_arg(input)) {
          add_arg(input, graph.node(input).name);
        } else if (unit_of(input) != u) {
          add_arg(input, output_name.at(input));
        } else {
          here[input] = true;
        }
      }
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (of_batch_[id] && (is_arg(id) || unit_of(id) != u)) continue;
      if (node.op == Op::kInput) {
        ids[id] = to.AddInput(node.name, node.dtype, node.shape, node.span);
        continue;
      }
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(ids[input]);
      ids[id] = to.Add(node.op, std::move(inputs), node.attr, node.name, node.span);
      if (!of_batch_[id]) continue;
      const auto name = output_name.find(id);
      if (name != output_name.end()) to.AddOutput(name->second, ids[id]);
    }
    if (to.outputs().empty()) continue;  // nothing that anybody needs
    unit.graph = FinishShared(std::move(to), std::move(unit_args));
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<size_t> ModelStages::StagesOfSums(const std::vector<size_t>& stage_of) const {
  std::vector<size_t> stages;
  for (const RowShares::Sum& sum : shares_.sums) {
    for (const tensor::Output& output : graph_.outputs()) {
      if (output.name == sum.parts[0]) stages.push_back(stage_of[layer_[output.node]]);
    }
  }
  return stages;
}

}  // namespace l3c::l1
