// Union-find over dense 32-bit ids, with an undo trail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "egraph/pages.h"

namespace l3c::egraph {

// The smaller id, which is the older class, becomes the representative: ids shown to users are
// stable, and the result depends only on the order of calls.
//
// Most ids asked for are representatives. One bit an id says so, and a million bits stay in the
// cache where a million parents do not.
class UnionFind {
 public:
  uint32_t Add() {
    const auto id = static_cast<uint32_t>(parents_.size());
    parents_.push_back(id);
    if (id % 64 == 0) roots_.push_back(0);
    roots_[id / 64] |= uint64_t{1} << (id % 64);
    return id;
  }
  // `count` more; the first of them.
  uint32_t AddMany(uint32_t count) {
    const auto first = static_cast<uint32_t>(parents_.size());
    uint32_t* parents = parents_.Append(count);
    for (uint32_t i = 0; i < count; ++i) parents[i] = first + i;
    const size_t end = size_t{first} + count;
    if (const size_t words = (end + 63) / 64; roots_.size() < words) roots_.resize(words, 0);
    for (size_t id = first; id < end;) {
      const size_t bits = std::min(64 - id % 64, end - id);
      roots_[id / 64] |= (~uint64_t{0} >> (64 - bits)) << (id % 64);
      id += bits;
    }
    return first;
  }
  bool IsRoot(uint32_t id) const { return (roots_[id / 64] >> (id % 64) & 1) != 0; }
  // Several threads may call it at once while nothing else is called and no level is open.
  uint32_t Find(uint32_t id) const { return IsRoot(id) ? id : FindSlow(id); }
  // Both must be representatives and differ. Returns the one that is none any more.
  uint32_t Join(uint32_t a, uint32_t b) {
    if (a > b) std::swap(a, b);
    SetParent(b, a);
    roots_[b / 64] &= ~(uint64_t{1} << (b % 64));
    return b;
  }
  size_t size() const { return parents_.size(); }
  size_t Bytes() const {
    return parents_.Bytes() + roots_.Bytes() + trail_.size() * sizeof(trail_[0]) +
           levels_.size() * sizeof(Level);
  }
  // Bytes() when `ids` more have been added.
  size_t BytesWith(size_t ids) const {
    return Bytes() - parents_.Bytes() - roots_.Bytes() + parents_.BytesAt(size() + ids) +
           roots_.BytesAt((size() + ids + 63) / 64);
  }

  // Pop() brings back what was there at the Push() before it; levels nest.
  void Push() {
    levels_.push_back({trail_.size(), parents_.size(), parents_.capacity(), roots_.capacity()});
    kept_ = static_cast<uint32_t>(parents_.size());
  }
  void Pop() {
    const Level level = levels_.back();
    levels_.pop_back();
    while (trail_.size() > level.trail) {
      const auto [id, parent] = trail_.back();
      trail_.pop_back();
      parents_[id] = parent;
      if (parent == id) roots_[id / 64] |= uint64_t{1} << (id % 64);
    }
    const size_t words = (level.size + 63) / 64;
    parents_.Truncate(level.size, level.parents_capacity);
    roots_.Truncate(words, level.roots_capacity);
    if (level.size % 64 != 0) roots_[words - 1] &= (uint64_t{1} << (level.size % 64)) - 1;
    kept_ = levels_.empty() ? 0 : static_cast<uint32_t>(levels_.back().size);
  }
  // Closes the latest level and keeps what has happened since.
  void DropLevel() {
    const size_t first = levels_.back().trail;
    levels_.pop_back();
    kept_ = levels_.empty() ? 0 : static_cast<uint32_t>(levels_.back().size);
    size_t left = first;
    for (size_t i = first; i < trail_.size(); ++i) {
      if (trail_[i].first < kept_) trail_[left++] = trail_[i];
    }
    trail_.resize(left);
  }

 private:
  struct Level {
    size_t trail;
    size_t size;
    size_t parents_capacity;
    size_t roots_capacity;
  };

  uint32_t Parent(uint32_t id) const {
    return std::atomic_ref(parents_[id]).load(std::memory_order_relaxed);
  }
  void SetParent(uint32_t id, uint32_t parent) const {
    if (id < kept_) trail_.emplace_back(id, parents_[id]);
    std::atomic_ref(parents_[id]).store(parent, std::memory_order_relaxed);
  }
  [[gnu::noinline]] uint32_t FindSlow(uint32_t id) const {
    // Halving keeps paths short; it moves no representative, hence the mutable parents. When
    // several threads do it, whichever writes last leaves an ancestor there.
    for (uint32_t parent = Parent(id); parent != id; parent = Parent(id)) {
      const uint32_t grandparent = Parent(parent);
      if (grandparent != parent) SetParent(id, grandparent);
      id = grandparent;
    }
    return id;
  }

  mutable GrowingArray<uint32_t> parents_;
  GrowingArray<uint64_t> roots_;  // bit by id: whether it is a representative
  // Parents overwritten since the first open level, of the ids that were there at the latest one.
  mutable std::vector<std::pair<uint32_t, uint32_t>> trail_;
  std::vector<Level> levels_;
  uint32_t kept_ = 0;  // ids at the latest level
};

}  // namespace l3c::egraph
