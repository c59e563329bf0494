// The k cheapest distinct terms.
//
// By tree cost: a term counts a shared part at every use, and may have a class by one e-node here
// and by another there, even one within the other. Terms are found in the order of their cost, so
// zero and cyclic classes are no trouble: a term is built from terms found before.
// By DAG cost: one e-node for each class, each counted once; every result is an optimum of exact
// extraction under the bounds that exclude the earlier ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "egraph/extract/exact.h"
#include "egraph/extract/node_graph.h"
#include "egraph/extract/plain.h"

namespace l3c::egraph {

// The cheapest terms of each class below the roots, as far as they were needed. Where there are
// several roots, a result is a term for each of them.
class TopTrees {
 public:
  // Prices below zero count as zero; infinity or NaN forbids an e-node. `max_work` bounds the
  // combinations looked at, and so the memory: about 24 bytes each.
  TopTrees(const NodeGraph& graph, std::span<const double> prices, std::span<const ClassRef> roots,
           size_t k, uint64_t max_work = 50'000'000);

  // At most k, by cost, ties in the order of e-nodes: the same on every run. Fewer when there are
  // no more, or when the work was exhausted.
  size_t size() const { return results_.size(); }
  double cost(size_t i) const { return terms_[results_[i]].cost; }
  bool work_exhausted() const { return work_exhausted_; }

  // A term: an e-node and a term for each of its children, by index. Parts are shared.
  struct Term {
    ENodeRef node;
    double cost = 0;
  };
  // The terms of result `i`, one for each root.
  std::span<const uint32_t> Roots(size_t i) const { return Children(results_[i]); }
  const Term& term(uint32_t t) const { return terms_[t]; }
  std::span<const uint32_t> Children(uint32_t t) const {
    return {children_.data() + first_child_[t], first_child_[t + 1] - first_child_[t]};
  }

 private:
  class Search;

  std::vector<Term> terms_;
  std::vector<uint32_t> first_child_{0};  // by term, into children_
  std::vector<uint32_t> children_;        // terms
  std::vector<uint32_t> results_;         // terms of an e-node above the roots
  bool work_exhausted_ = false;
};

struct TopDag {
  PlainExtraction extraction;
  bool proven = false;  // no other term that is not among the earlier results is cheaper
};

// At most `k`, by cost; fewer when there are no more or `options` ran out of time or work, which
// the last result's `proven` may tell. Requirements are not supported here.
std::vector<TopDag> TopDags(const NodeGraph& graph, std::span<const double> prices,
                            std::span<const ClassRef> roots, size_t k,
                            const ExactOptions& options = {});

}  // namespace l3c::egraph
