// One bottom-up pass: an e-node for every class that has a finite term.
//
// Knuth's generalisation of Dijkstra's algorithm: classes are finalised in the order of their cost,
// an e-node becomes a candidate once all its children are final, and the cheapest candidate
// finalises its class. Costs never fall from child to parent, so a final choice is never regretted,
// and no choice can reach itself. Ties go to the smaller e-node index. Sums stop at the largest
// number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/extract/node_graph.h"

namespace l3c::egraph {

// E-nodes by the classes among their children.
class UserIndex {
 public:
  explicit UserIndex(const NodeGraph& view);
  // The e-nodes with child `c`, each once, ascending.
  std::span<const ENodeRef> Users(ClassRef c) const {
    return {users_.data() + first_[c.index], first_[c.index + 1] - first_[c.index]};
  }
  // Distinct children of an e-node; more than any class count when one of them has no e-nodes.
  uint32_t DistinctChildren(ENodeRef n) const { return distinct_[n.index]; }

 private:
  std::vector<uint32_t> first_;
  std::vector<ENodeRef> users_;
  std::vector<uint32_t> distinct_;
};

class Pass {
 public:
  // Closures of all classes together: 200 MB.
  static constexpr size_t kMaxClosureEntries = 50'000'000;

  enum class Sharing : uint8_t {
    kTree,  // the cost of a class is the sum over its term
    kDag,   // the cost of a class is the sum over the distinct classes of its term
  };

  Pass(const NodeGraph& view, const UserIndex& users) : view_(view), users_(users) {}

  struct Input {
    // Price of each e-node, ≥ 0; infinity forbids it.
    std::span<const double> prices;
    // By class: the only e-node allowed, invalid for any. May be empty: any everywhere.
    std::span<const ENodeRef> forced;
    // By class: nonzero when whatever is chosen for it is free. May be empty.
    std::span<const uint8_t> free;
  };
  // The results below are of the last call. Adds the e-nodes looked at to `work`.
  void Run(Sharing sharing, const Input& input, uint64_t* work);

  std::span<const ENodeRef> choice() const { return choice_; }  // invalid where no finite term
  double Cost(ClassRef c) const { return costs_[c.index]; }
  // kDag: true when the closures would take more than kMaxClosureEntries; the choice is then
  // partial.
  bool truncated() const { return truncated_; }
  // kDag: the classes of the chosen term of `c`, `c` included.
  std::span<const uint32_t> Closure(ClassRef c) const { return closures_[c.index]; }

 private:
  struct Entry {
    double cost;
    uint32_t node;
  };
  void Consider(Sharing sharing, const Input& input, ENodeRef n, uint64_t* work);
  double Price(const Input& input, ENodeRef n) const;
  // Stamps the classes below `n` and gives the sum of their final prices.
  double StampChildren(ENodeRef n, uint64_t* work);

  const NodeGraph& view_;
  const UserIndex& users_;
  std::vector<ENodeRef> choice_;
  std::vector<double> costs_;
  std::vector<double> final_prices_;  // by class
  std::vector<std::vector<uint32_t>> closures_;
  std::vector<uint32_t> missing_;  // by e-node: distinct children not final yet
  std::vector<uint32_t> stamps_;
  uint32_t stamp_ = 0;
  std::vector<uint32_t> stamped_;
  std::vector<Entry> heap_;
  bool truncated_ = false;
};

}  // namespace l3c::egraph
