// Union-find over dense 32-bit ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace l3c::egraph {

// The smaller id, which is the older class, becomes the representative: ids shown to users are
// stable, and the result depends only on the order of calls.
class UnionFind {
 public:
  uint32_t Add() {
    parents_.push_back(static_cast<uint32_t>(parents_.size()));
    return parents_.back();
  }
  uint32_t Find(uint32_t id) const {
    // Halving keeps paths short; it moves no representative, hence the mutable parents.
    while (parents_[id] != id) {
      parents_[id] = parents_[parents_[id]];
      id = parents_[id];
    }
    return id;
  }
  bool IsRoot(uint32_t id) const { return parents_[id] == id; }
  // Both must be representatives and differ. Returns the one that is none any more.
  uint32_t Join(uint32_t a, uint32_t b) {
    if (a > b) std::swap(a, b);
    parents_[b] = a;
    return b;
  }
  size_t size() const { return parents_.size(); }
  size_t Bytes() const { return parents_.capacity() * sizeof(uint32_t); }

 private:
  mutable std::vector<uint32_t> parents_;
};

}  // namespace l3c::egraph
