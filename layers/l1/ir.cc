#include "layers/l1/ir.h"

#include <algorithm>

namespace l3c::l1 {
namespace {

template <typename T>
const T* FindByName(const std::vector<T>& items, std::string_view name) {
  for (const T& item : items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

}  // namespace

std::optional<uint32_t> FindNode(const System& system, std::string_view name) {
  for (uint32_t i = 0; i < system.nodes.size(); ++i) {
    if (system.nodes[i].name == name) return i;
  }
  return std::nullopt;
}

const BoundData* FindData(const Program& program, std::string_view name) {
  return FindByName(program.data, name);
}
const BoundField* FindField(const BoundData& data, std::string_view name) {
  return FindByName(data.fields, name);
}
const Actor* FindActor(const Program& program, std::string_view name) {
  return FindByName(program.actors, name);
}
const StateField* FindState(const Actor& actor, std::string_view name) {
  return FindByName(actor.state, name);
}
const Window* FindWindow(const Actor& actor, std::string_view name) {
  return FindByName(actor.windows, name);
}
const Stage* FindStage(const Program& program, std::string_view name) {
  return FindByName(program.stages, name);
}
const TensorGraph* FindGraph(const Program& program, std::string_view name) {
  return FindByName(program.graphs, name);
}
const Pipeline* FindPipeline(const Program& program, std::string_view name) {
  return FindByName(program.pipelines, name);
}

std::optional<HandlerRef> FindHandler(const Program& program, std::string_view link) {
  const size_t dot = link.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const Actor* actor = FindActor(program, link.substr(0, dot));
  if (actor == nullptr) return std::nullopt;
  for (const Handler& handler : actor->handlers) {
    if (handler.message == link.substr(dot + 1)) return HandlerRef{actor, &handler};
  }
  return std::nullopt;
}

std::optional<StateOwner> FindWindowField(
    const Program& program, const std::vector<std::pair<std::string, std::string>>& reads,
    std::string_view name) {
  for (const auto& [actor_name, window_name] : reads) {
    const Actor* actor = FindActor(program, actor_name);
    const Window* window = actor != nullptr ? FindWindow(*actor, window_name) : nullptr;
    if (window == nullptr) continue;
    if (std::find(window->fields.begin(), window->fields.end(), name) == window->fields.end()) {
      continue;
    }
    return StateOwner{actor, FindState(*actor, name)};
  }
  return std::nullopt;
}

void ForEachStatement(const std::vector<Statement>& body,
                      const std::function<void(const Statement&)>& visit) {
  for (const Statement& statement : body) {
    visit(statement);
    ForEachStatement(statement.then_body, visit);
    ForEachStatement(statement.else_body, visit);
  }
}

std::string TargetOf(const Statement& forward) {
  return forward.target + (forward.handler.empty() ? "" : "." + forward.handler);
}

bool HoldsBuffers(const SystemNode& node) {
  return node.kind == NodeKind::kMemory || (node.kind == NodeKind::kCompute && node.vram > 0);
}

int64_t BufferCapacity(const SystemNode& node) {
  return node.kind == NodeKind::kCompute ? node.vram : node.capacity;
}

std::vector<uint32_t> LocalMemories(const System& system, uint32_t compute) {
  if (system.nodes[compute].vram > 0) return {compute};
  std::vector<uint32_t> memories;
  for (const Edge& edge : system.edges) {
    uint32_t other = 0;
    if (edge.from == compute) {
      other = edge.to;
    } else if (edge.to == compute) {
      other = edge.from;
    } else {
      continue;
    }
    if (system.nodes[other].kind == NodeKind::kMemory) memories.push_back(other);
  }
  std::sort(memories.begin(), memories.end());
  memories.erase(std::unique(memories.begin(), memories.end()), memories.end());
  return memories;
}

uint32_t MemoryOf(const System& system, uint32_t compute) {
  const std::vector<uint32_t> memories = LocalMemories(system, compute);
  return memories.empty() ? compute : memories.front();
}

uint32_t HomeOf(const System& system, const Actor& actor) {
  return actor.home ? *actor.home : MemoryOf(system, actor.node);
}

bool IsBroughtIn(const System& system, const Actor& actor) {
  const std::vector<uint32_t> local = LocalMemories(system, actor.node);
  return std::find(local.begin(), local.end(), HomeOf(system, actor)) == local.end();
}

bool HasPath(const System& system, uint32_t from, uint32_t to) {
  std::vector<bool> reached(system.nodes.size());
  std::vector<uint32_t> work = {from};
  reached[from] = true;
  while (!work.empty()) {
    const uint32_t node = work.back();
    work.pop_back();
    if (node == to) return true;
    for (const Edge& edge : system.edges) {
      uint32_t next = node;
      if (edge.from == node) next = edge.to;
      if (edge.both_ways && edge.to == node) next = edge.from;
      if (reached[next]) continue;
      reached[next] = true;
      work.push_back(next);
    }
  }
  return false;
}

int64_t ByteSize(tensor::DType dtype, const tensor::Shape& shape) {
  return static_cast<int64_t>(tensor::SizeOf(dtype)) * tensor::NumElements(shape);
}

std::string_view NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kStorage:
      return "storage";
    case NodeKind::kMemory:
      return "memory";
    case NodeKind::kCompute:
      return "compute";
  }
  return "";
}

std::string_view SampleKindName(SampleKind kind) {
  return kind == SampleKind::kEpochShuffle ? "epoch_shuffle"
         : kind == SampleKind::kReplay     ? "replay"
                                           : "sequential";
}

}  // namespace l3c::l1
