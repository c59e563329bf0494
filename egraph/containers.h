// Containers: vectors, sets, multisets, maps, pairs, and functions applied to some of their
// arguments.
//
// A container is a value like a literal: interned, so that equal contents of one sort have equal
// bits. One that holds classes changes its contents when they are united; it then becomes another
// value (EGraph::Canonical), and rebuilding carries that into the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "egraph/ids.h"
#include "egraph/pages.h"

namespace l3c::egraph {

class EGraph;

enum class ContainerKind : uint8_t {
  kNone,
  kVec,
  kSet,       // elements ascending by bits, each once
  kMultiSet,  // elements ascending by bits, repeated as often as they are in it
  kMap,       // key, value, key, value, …; keys ascending by bits, each once
  kPair,
  // The name of a function or primitive as a String, then for each captured argument the index of
  // its sort and its value.
  kFn,
};

// Containers nest no deeper than this, so that passes over them may recurse.
inline constexpr uint32_t kMaxContainerDepth = 1000;

// "Vec", …: what a sort is declared with; kNone for an unknown name.
ContainerKind ParseContainerKind(std::string_view name);
// The number of sorts a container is declared with: 1 or 2. Not for functions.
size_t ContainerParameters(ContainerKind kind);
// The primitive that makes one from its elements in order: "vec-of", …
std::string_view ContainerConstructor(ContainerKind kind);
// Brings elements into the order, and without the repetitions, that the kind asks for. Of two
// values for one key the later one stays.
void NormalizeElements(ContainerKind kind, std::vector<Value>* elements);
// The primitives of one container sort.
void RegisterContainerPrimitives(EGraph& graph, SortId sort);

class ContainerPool {
 public:
  // Elements must be normalized.
  Value Intern(SortId sort, std::span<const Value> elements, uint32_t depth);
  // How deep containers nest in it; 1 for one of other values.
  uint32_t Depth(Value container) const { return entries_[container.bits].depth; }
  std::span<const Value> Elements(Value container) const {
    const Entry& entry = entries_[container.bits];
    return {elements_.data() + entry.begin, entry.size};
  }
  // What SetCanonical() stored, if it was stored at `now`.
  std::optional<Value> CanonicalSince(Value container, uint64_t now) const {
    const Entry& entry = entries_[container.bits];
    if (entry.canonical_at != now) return std::nullopt;
    return entry.canonical;
  }
  void SetCanonical(Value container, Value canonical, uint64_t now) {
    entries_[container.bits].canonical = canonical;
    entries_[container.bits].canonical_at = now;
  }
  // Takes back what has been interned since mark(). What SetCanonical() stored may name such
  // values: `now` must be another one from then on.
  struct Mark {
    VectorMark entries, elements;
    size_t slots;
  };
  Mark mark() const { return {VectorMark(entries_), VectorMark(elements_), slots_.size()}; }
  void Rewind(const Mark& mark);
  size_t Bytes() const {
    return entries_.capacity() * sizeof(Entry) + elements_.capacity() * sizeof(Value) +
           slots_.capacity() * sizeof(uint32_t);
  }

 private:
  struct Entry {
    size_t begin = 0;  // into elements_
    uint32_t size = 0;
    uint32_t hash = 0;
    uint32_t depth = 0;
    SortId sort;
    Value canonical;
    uint64_t canonical_at = ~uint64_t{0};
  };
  void Fill(size_t slots);

  std::vector<Entry> entries_;  // by value
  std::vector<Value> elements_;
  std::vector<uint32_t> slots_;  // open addressing: index of the entry plus 1, 0 where empty
};

}  // namespace l3c::egraph
