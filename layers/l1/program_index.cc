#include "layers/l1/program_index.h"

#include <algorithm>

namespace l3c::l1 {

ProgramIndex::ProgramIndex(const Program& program) {
  for (const BoundData& data : program.data) data_.emplace(data.name, &data);
  for (const Stage& stage : program.stages) stages_.emplace(stage.name, &stage);
  for (const TensorGraph& graph : program.graphs) graphs_.emplace(graph.name, &graph);
  for (const Pipeline& pipeline : program.pipelines) pipelines_.emplace(pipeline.name, &pipeline);
  for (const Actor& actor : program.actors) {
    if (!actors_.emplace(actor.name, &actor).second) continue;
    Members& members = members_[&actor];
    for (const StateField& field : actor.state) members.state.emplace(field.name, &field);
    for (const Window& window : actor.windows) {
      if (!members.windows.emplace(window.name, &window).second) continue;
      ByName<StateField>& granted = members.granted[window.name];
      for (const std::string& name : window.fields) {
        const auto field = members.state.find(name);
        if (field != members.state.end()) granted.emplace(name, field->second);
      }
    }
    for (const Handler& handler : actor.handlers) {
      handlers_.emplace(actor.name + "." + handler.message, HandlerRef{&actor, &handler});
    }
  }
}

const HandlerRef* ProgramIndex::FindHandler(std::string_view link) const {
  if (link.find('.') == std::string_view::npos) return nullptr;
  const auto it = handlers_.find(std::string(link));
  return it == handlers_.end() ? nullptr : &it->second;
}

const StateField* ProgramIndex::FindState(const Actor& actor, std::string_view name) const {
  const auto members = members_.find(&actor);
  return members == members_.end() ? nullptr : At(members->second.state, name);
}

const Window* ProgramIndex::FindWindow(const Actor& actor, std::string_view name) const {
  const auto members = members_.find(&actor);
  return members == members_.end() ? nullptr : At(members->second.windows, name);
}

std::optional<StateOwner> ProgramIndex::FindWindowField(
    const std::vector<std::pair<std::string, std::string>>& reads, std::string_view name) const {
  for (const auto& [actor_name, window_name] : reads) {
    const Actor* actor = FindActor(actor_name);
    if (actor == nullptr) continue;
    const auto& granted = members_.at(actor).granted;
    const auto window = granted.find(window_name);
    if (window == granted.end()) continue;
    if (const StateField* field = At(window->second, name)) return StateOwner{actor, field};
  }
  return std::nullopt;
}

Topology::Topology(const System& system) : next_(system.nodes.size()), local_(system.nodes.size()) {
  const auto touches = [&](uint32_t node, uint32_t other) {
    if (system.nodes[other].kind == NodeKind::kMemory) local_[node].push_back(other);
  };
  for (const Edge& edge : system.edges) {
    if (edge.from >= next_.size() || edge.to >= next_.size()) continue;
    next_[edge.from].push_back(edge.to);
    if (edge.both_ways) next_[edge.to].push_back(edge.from);
    touches(edge.from, edge.to);
    touches(edge.to, edge.from);
  }
  for (uint32_t node = 0; node < local_.size(); ++node) {
    std::vector<uint32_t>& memories = local_[node];
    if (system.nodes[node].vram > 0) memories = {node};
    std::sort(memories.begin(), memories.end());
    memories.erase(std::unique(memories.begin(), memories.end()), memories.end());
  }
}

bool Topology::IsLocal(uint32_t node, uint32_t memory) const {
  return std::binary_search(local_[node].begin(), local_[node].end(), memory);
}

bool Topology::Share(uint32_t a, uint32_t b) const {
  return std::any_of(local_[a].begin(), local_[a].end(),
                     [&](uint32_t memory) { return IsLocal(b, memory); });
}

bool Topology::HasPath(uint32_t from, uint32_t to) {
  auto [it, fresh] = reached_.try_emplace(from);
  std::vector<bool>& reached = it->second;
  if (fresh) {
    reached.resize(next_.size());
    reached[from] = true;
    std::vector<uint32_t> work = {from};
    while (!work.empty()) {
      const uint32_t node = work.back();
      work.pop_back();
      for (uint32_t next : next_[node]) {
        if (reached[next]) continue;
        reached[next] = true;
        work.push_back(next);
      }
    }
  }
  return reached[to];
}

}  // namespace l3c::l1
