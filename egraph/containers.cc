#include "egraph/containers.h"

#include <algorithm>
#include <utility>

#include "egraph/hash.h"

namespace l3c::egraph {

namespace {

uint32_t HashElements(SortId sort, std::span<const Value> elements) {
  uint64_t h = Mix(0, sort.index);
  for (Value v : elements) h = Mix(h, v.bits);
  return Fold(h);
}

}  // namespace

ContainerKind ParseContainerKind(std::string_view name) {
  if (name == "Vec") return ContainerKind::kVec;
  if (name == "Set") return ContainerKind::kSet;
  if (name == "MultiSet") return ContainerKind::kMultiSet;
  if (name == "Map") return ContainerKind::kMap;
  if (name == "Pair") return ContainerKind::kPair;
  if (name == "UnstableFn") return ContainerKind::kFn;
  return ContainerKind::kNone;
}

size_t ContainerParameters(ContainerKind kind) {
  return kind == ContainerKind::kMap || kind == ContainerKind::kPair ? 2 : 1;
}

std::string_view ContainerConstructor(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::kVec:
      return "vec-of";
    case ContainerKind::kSet:
      return "set-of";
    case ContainerKind::kMultiSet:
      return "multiset-of";
    case ContainerKind::kMap:
      return "map-of";
    case ContainerKind::kPair:
      return "pair";
    case ContainerKind::kFn:
      return "unstable-fn";
    case ContainerKind::kNone:
      break;
  }
  return "";
}

void NormalizeElements(ContainerKind kind, std::vector<Value>* elements) {
  switch (kind) {
    case ContainerKind::kSet:
      std::sort(elements->begin(), elements->end());
      elements->erase(std::unique(elements->begin(), elements->end()), elements->end());
      return;
    case ContainerKind::kMultiSet:
      std::sort(elements->begin(), elements->end());
      return;
    case ContainerKind::kMap: {
      std::vector<std::pair<Value, Value>> entries;
      for (size_t i = 0; i + 1 < elements->size(); i += 2) {
        entries.emplace_back((*elements)[i], (*elements)[i + 1]);
      }
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      elements->clear();
      for (size_t i = 0; i < entries.size(); ++i) {
        if (i + 1 < entries.size() && entries[i + 1].first == entries[i].first) continue;
        elements->push_back(entries[i].first);
        elements->push_back(entries[i].second);
      }
      return;
    }
    case ContainerKind::kVec:
    case ContainerKind::kPair:
    case ContainerKind::kFn:
    case ContainerKind::kNone:
      return;
  }
}

Value ContainerPool::Intern(SortId sort, std::span<const Value> elements, uint32_t depth) {
  if ((entries_.size() + 1) * 2 > slots_.size()) Fill(std::max<size_t>(16, slots_.size() * 2));
  const uint32_t hash = HashElements(sort, elements);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && entry.sort == sort && entry.size == elements.size() &&
        std::equal(elements.begin(), elements.end(),
                   elements_.begin() + static_cast<ptrdiff_t>(entry.begin))) {
      return Value{slots_[slot] - 1};
    }
  }
  Entry entry;
  entry.begin = elements_.size();
  entry.size = static_cast<uint32_t>(elements.size());
  entry.hash = hash;
  entry.depth = depth;
  entry.sort = sort;
  elements_.insert(elements_.end(), elements.begin(), elements.end());
  entries_.push_back(entry);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  return Value{slots_[slot] - 1};
}

void ContainerPool::Fill(size_t slots) {
  slots_ = std::vector<uint32_t>(slots, 0);  // with no more room than that
  const size_t mask = slots_.size() - 1;
  for (uint32_t e = 0; e < entries_.size(); ++e) {
    size_t slot = entries_[e].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = e + 1;
  }
}

void ContainerPool::Rewind(const Mark& mark) {
  const size_t mask = slots_.size() - 1;
  if (slots_.size() == mark.slots) {
    // The latest entry was the last to enter a run of full slots: none behind it moves up.
    for (size_t e = entries_.size(); e-- > mark.entries.size;) {
      size_t slot = entries_[e].hash & mask;
      while (slots_[slot] != e + 1) slot = (slot + 1) & mask;
      slots_[slot] = 0;
    }
  }
  mark.entries.CutBack(&entries_);
  mark.elements.CutBack(&elements_);
  if (slots_.size() != mark.slots) Fill(mark.slots);
}

}  // namespace l3c::egraph
