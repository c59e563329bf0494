// Extraction from a bare NodeGraph with a price for every e-node: what the extractors of extract.h
// do on a view of an e-graph, for graphs that come from elsewhere (serialize.h).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "egraph/extract/node_graph.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

struct PlainExtraction {
  bool feasible = false;
  // By class: the e-node taken, invalid where the class is not reached from the roots.
  std::vector<ENodeRef> choice;
  std::vector<ClassRef> order;  // classes reached, children before parents
  double dag_cost = std::numeric_limits<double>::infinity();
  double tree_cost = std::numeric_limits<double>::infinity();  // stops at the largest number
  uint64_t work = 0;  // of PlainGreedyDag(): steps of reductions and search
};

// The choice for each class, cut down to what the roots reach, and its costs. Not feasible where a
// class reached has no choice or is below itself.
PlainExtraction MeasureChoice(const NodeGraph& graph, std::span<const double> prices,
                              std::span<const ClassRef> roots, std::span<const ENodeRef> choice);

// The cheapest by tree cost; prices below zero count as zero in the choice and as they are in the
// costs. Infinity or NaN forbids an e-node.
PlainExtraction PlainTree(const NodeGraph& graph, std::span<const double> prices,
                          std::span<const ClassRef> roots);
// Cheap by DAG cost, soon: the reductions of exact extraction and a local search over what is left
// (local_search.h), in steps proportional to that. After `max_work` steps in all, or when the time
// is up, nothing new is begun: a reduction or a move under way is carried through, and what every
// extraction takes, a few passes over the graph, always runs. Never dearer by DAG cost than
// PlainTree().
PlainExtraction PlainGreedyDag(const NodeGraph& graph, std::span<const double> prices,
                               std::span<const ClassRef> roots, uint64_t max_work,
                               const TimeLimit& time = {});

}  // namespace l3c::egraph
