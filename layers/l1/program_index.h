// Look-ups in a program by name, and in its system by node, in constant time: the functions of
// ir.h search the lists one by one, which a file of 100,000 declarations is too long for.
//
// Both hold pointers into what they are made from, which must stay where it is and as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "layers/l1/ir.h"

namespace l3c::l1 {

class ProgramIndex {
 public:
  explicit ProgramIndex(const Program& program);

  // nullptr when there is none; of two of one name the first.
  const BoundData* FindData(std::string_view name) const { return At(data_, name); }
  const Actor* FindActor(std::string_view name) const { return At(actors_, name); }
  const Stage* FindStage(std::string_view name) const { return At(stages_, name); }
  const TensorGraph* FindGraph(std::string_view name) const { return At(graphs_, name); }
  const Pipeline* FindPipeline(std::string_view name) const { return At(pipelines_, name); }
  // "actor.message".
  const HandlerRef* FindHandler(std::string_view link) const;
  const StateField* FindState(const Actor& actor, std::string_view name) const;
  const Window* FindWindow(const Actor& actor, std::string_view name) const;
  // As in ir.h.
  std::optional<StateOwner> FindWindowField(
      const std::vector<std::pair<std::string, std::string>>& reads, std::string_view name) const;

 private:
  template <typename T>
  using ByName = std::unordered_map<std::string_view, const T*>;
  template <typename T>
  static const T* At(const ByName<T>& map, std::string_view name) {
    const auto it = map.find(name);
    return it == map.end() ? nullptr : it->second;
  }
  struct Members {
    ByName<StateField> state;
    ByName<Window> windows;
    // By window: the fields that it grants.
    std::unordered_map<std::string_view, ByName<StateField>> granted;
  };

  ByName<BoundData> data_;
  ByName<Actor> actors_;
  ByName<Stage> stages_;
  ByName<TensorGraph> graphs_;
  ByName<Pipeline> pipelines_;
  std::unordered_map<std::string, HandlerRef> handlers_;
  std::unordered_map<const Actor*, Members> members_;
};

class Topology {
 public:
  explicit Topology(const System& system);

  // As in ir.h.
  const std::vector<uint32_t>& LocalMemories(uint32_t node) const { return local_[node]; }
  bool IsLocal(uint32_t node, uint32_t memory) const;
  // Whether the two nodes work in a common memory.
  bool Share(uint32_t a, uint32_t b) const;
  bool HasPath(uint32_t from, uint32_t to);

 private:
  std::vector<std::vector<uint32_t>> next_;                  // by node: along edges
  std::vector<std::vector<uint32_t>> local_;                 // by node
  std::unordered_map<uint32_t, std::vector<bool>> reached_;  // from the nodes asked about
};

}  // namespace l3c::l1
