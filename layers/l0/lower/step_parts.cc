#include "layers/l0/lower/step_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

using tensor::Node;
using tensor::NodeId;
using tensor::Op;

namespace {

constexpr NodeId kNone = RepeatedBlocks::kNone;
// Nodes of a part; a search of less takes no time worth saving.
constexpr size_t kLeastNodes = 24;

class StepCutter {
 public:
  StepCutter(const Step& step, RepeatedBlocks blocks)
      : step_(step), nodes_(step.graph.nodes()), owner_(nodes_.size(), kNobody) {
    cut_.blocks = std::move(blocks);
    for (size_t i = 0; i < step.inputs.size(); ++i) input_of_[step.inputs[i].node] = i;
  }

  std::optional<StepParts> Cut() {
    FindLive();
    FindFree();
    FindParts();
    if (parts_.size() < 2) return std::nullopt;
    FindHandedOver();
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (!Build(p)) return std::nullopt;
    }
    return std::move(cut_);
  }

 private:
  static constexpr size_t kNobody = ~size_t{0};

  struct Members {
    std::string name;
    int64_t copies = 1;
    std::set<NodeId> handed_over;  // to other parts, or to other copies of this one
    std::vector<size_t> outputs;   // of the step
  };

  int64_t CopyOf(NodeId id) const { return cut_.blocks.copy[id]; }
  bool InBlock(NodeId id) const { return CopyOf(id) >= 0 && CopyOf(id) <= cut_.blocks.left_out; }
  bool IsLeaf(NodeId id) const { return nodes_[id].op == Op::kInput; }

  void FindLive() {
    live_.assign(nodes_.size(), false);
    for (const StepOutput& output : step_.outputs) live_[output.node] = true;
    for (size_t id = nodes_.size(); id-- > 0;) {
      if (!live_[id]) continue;
      for (const NodeId a : nodes_[id].inputs) live_[a] = true;
    }
  }

  // Of constants and of single numbers of the state, element by element.
  void FindFree() {
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      const Node& node = nodes_[id];
      bool free = IsElementwise(node.op) || IsView(node.op) || node.inputs.empty();
      if (IsLeaf(id)) {
        const auto input = input_of_.find(id);
        free = input != input_of_.end() &&
               step_.inputs[input->second].kind == StepInput::Kind::kState &&
               tensor::NumElements(node.shape) == 1;
      }
      free = free && node.op != Op::kRandom;
      for (const NodeId a : node.inputs) free = free && free_[a];
      free_.push_back(free);
    }
  }

  // The block, and what hangs together of the rest; what is small goes with the last of it.
  void FindParts() {
    std::vector<NodeId> leader(nodes_.size());
    std::iota(leader.begin(), leader.end(), NodeId{0});
    const auto find = [&](NodeId id) {
      while (leader[id] != id) id = leader[id] = leader[leader[id]];
      return id;
    };
    const auto around = [&](NodeId id) {
      return live_[id] && !free_[id] && !IsLeaf(id) && !InBlock(id);
    };
    NodeId first_of_block = kNone;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (InBlock(id) && !IsLeaf(id)) first_of_block = std::min(first_of_block, id);
      if (!around(id)) continue;
      for (const NodeId a : nodes_[id].inputs) {
        if (around(a)) leader[std::max(find(id), find(a))] = std::min(find(id), find(a));
      }
    }
    std::map<NodeId, size_t> size;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (around(id)) ++size[find(id)];
    }
    parts_.push_back({"block", 1 + cut_.blocks.left_out, {}, {}});
    std::map<NodeId, size_t> part_of;  // by leader
    for (const auto& [id, count] : size) {
      if (count < kLeastNodes) continue;
      part_of[id] = parts_.size();
      std::string name = id < first_of_block ? "before" : "after";
      const auto same = [&](const Members& part) { return part.name.starts_with(name); };
      const auto known = std::count_if(parts_.begin(), parts_.end(), same);
      if (known > 0) name += std::to_string(known + 1);
      parts_.push_back({name, 1, {}, {}});
    }
    if (part_of.empty() && !size.empty()) parts_.push_back({"around", 1, {}, {}});
    const size_t last = parts_.size() - 1;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (!live_[id] || free_[id] || IsLeaf(id)) continue;
      const auto part = InBlock(id) ? part_of.end() : part_of.find(find(id));
      owner_[id] = InBlock(id) ? 0 : (part == part_of.end() ? last : part->second);
    }
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      const NodeId id = step_.outputs[o].node;
      const size_t owner = owner_[id] == kNobody ? last : owner_[id];
      if (owner == 0 && CopyOf(id) != 0) continue;  // as in the first copy
      parts_[owner].outputs.push_back(o);
    }
  }

  void FindHandedOver() {
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (owner_[id] == kNobody) continue;
      for (const NodeId a : nodes_[id].inputs) {
        if (owner_[a] == kNobody) continue;
        if (owner_[a] == owner_[id] && (owner_[a] != 0 || CopyOf(a) == CopyOf(id))) continue;
        parts_[owner_[a]].handed_over.insert(owner_[a] == 0 ? cut_.blocks.Shift(a, -CopyOf(a)) : a);
      }
    }
  }

  bool Build(size_t p) {
    const Members& members = parts_[p];
    // What the part is made of, and what it is given, from its outputs down.
    std::set<NodeId> needed, given;
    std::vector<NodeId> open(members.handed_over.begin(), members.handed_over.end());
    for (const size_t o : members.outputs) open.push_back(step_.outputs[o].node);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (id == kNone) return false;
      if (!needed.insert(id).second || IsLeaf(id)) continue;
      const bool own = free_[id] || (owner_[id] == p && (p != 0 || CopyOf(id) == 0));
      if (!own) {
        given.insert(id);
        continue;
      }
      open.insert(open.end(), nodes_[id].inputs.begin(), nodes_[id].inputs.end());
    }
    std::map<NodeId, int32_t> order;
    for (const NodeId id : given) order[id] = 0;
    for (const NodeId id : members.handed_over) order[id] = 0;
    int32_t next = 0;
    for (auto& [id, place] : order) place = next++;

    StepPart part;
    part.name = members.name;
    part.copies = members.copies;
    part.step.name = kStepName;
    part.step.made = kMadeName;
    std::map<NodeId, NodeId> here;
    for (const NodeId id : needed) {
      const Node& node = nodes_[id];
      const std::string name = PlaceName(static_cast<NodeId>(part.origin.size()));
      const bool leaf = IsLeaf(id) || given.contains(id);
      std::vector<NodeId> inputs;
      for (const NodeId a : leaf ? std::vector<NodeId>() : node.inputs) {
        inputs.push_back(here.at(a));
      }
      tensor::Graph& graph = part.step.graph;
      here[id] = leaf ? graph.AddInput(name, node.dtype, node.shape, node.span)
                      : graph.Add(node.op, std::move(inputs), node.attr, name, node.span);
      part.origin.push_back(id);
      if (id < step_.memory.size()) part.step.memory.push_back(step_.memory[id]);
      if (given.contains(id)) {
        part.step.inputs.push_back({StepInput::Kind::kHandedOver, here[id], {}, 0, order.at(id)});
      } else if (leaf) {
        const auto input = input_of_.find(id);
        if (input == input_of_.end()) return false;
        StepInput own = step_.inputs[input->second];
        own.node = here[id];
        if (own.kind == StepInput::Kind::kState) own.state = State(part, own.state, id);
        part.step.inputs.push_back(std::move(own));
      }
    }
    for (const NodeId id : members.handed_over) {
      part.step.outputs.push_back({StepOutput::Kind::kReport, here.at(id), 0, {}, order.at(id)});
    }
    for (const size_t o : members.outputs) {
      StepOutput output = step_.outputs[o];
      const NodeId id = output.node;
      output.node = here.at(id);
      if (output.kind == StepOutput::Kind::kState) output.state = State(part, output.state, id);
      output.name.clear();
      part.step.outputs.push_back(std::move(output));
      part.outputs.push_back(o);
    }
    cut_.parts.push_back(std::move(part));
    return true;
  }

  // The part's number for a state that stands, or is made, at a node.
  uint32_t State(StepPart& part, uint32_t state, NodeId id) const {
    const auto known = std::find(part.states.begin(), part.states.end(), state);
    if (known != part.states.end()) return static_cast<uint32_t>(known - part.states.begin());
    part.states.push_back(state);
    part.state_is_copied.push_back(CopyOf(id) != RepeatedBlocks::kNoCopy);
    return static_cast<uint32_t>(part.states.size() - 1);
  }

  const Step& step_;
  const std::vector<Node>& nodes_;
  std::map<NodeId, size_t> input_of_;
  std::vector<bool> live_;
  std::vector<bool> free_;
  std::vector<size_t> owner_;  // by node: the part; kNobody for leaves and what is free
  std::vector<Members> parts_;
  StepParts cut_;
};

}  // namespace

std::optional<NodeId> StepParts::NodeOf(const StepPart& part, NodeId node, int64_t copy) const {
  const NodeId first = part.origin[node];
  if (copy == 0 || blocks.copy[first] == RepeatedBlocks::kNoCopy) return first;
  const NodeId id = blocks.Shift(first, copy);
  return id == kNone ? std::nullopt : std::optional(id);
}

std::optional<uint32_t> StepParts::StateOf(const StepPart& part, uint32_t state,
                                           int64_t copy) const {
  if (!part.state_is_copied[state]) return part.states[state];
  return blocks.ShiftState(part.states[state], copy);
}

std::optional<StepParts> CutStep(const Step& step) {
  std::optional<RepeatedBlocks> blocks = FindRepeatedBlocks(step);
  if (!blocks) return std::nullopt;
  return StepCutter(step, *std::move(blocks)).Cut();
}

std::string PlaceName(NodeId node) { return "__" + std::to_string(node) + "__"; }

namespace {

// Of the text from `at` on, where a place's name begins there: its node, and where it ends.
std::optional<std::pair<NodeId, size_t>> PlaceAt(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("__")) return std::nullopt;
  NodeId node = 0;
  size_t end = at + 2;
  for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end) {
    node = node * 10 + static_cast<NodeId>(text[end] - '0');
  }
  if (end == at + 2 || !text.substr(end).starts_with("__")) return std::nullopt;
  return std::make_pair(node, end + 2);
}

}  // namespace

std::optional<NodeId> FirstPlace(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (const auto place = PlaceAt(text, at)) return place->first;
  }
  return std::nullopt;
}

std::string Spell(std::string_view text, const StepParts& parts, const StepPart& part, int64_t copy,
                  const Step& whole) {
  std::string spelled;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kStepName)) {
      spelled += whole.name;
      at += kStepName.size();
    } else if (text.substr(at).starts_with(kMadeName)) {
      spelled += part.name + "_v";
      at += kMadeName.size();
    } else if (const auto place = PlaceAt(text, at); place && place->first < part.origin.size()) {
      const std::optional<NodeId> node = parts.NodeOf(part, place->first, copy);
      spelled += node ? whole.graph.node(*node).name : std::string();
      at = place->second;
    } else {
      spelled += text[at++];
    }
  }
  return spelled;
}

}  // namespace l3c::l0::lower
