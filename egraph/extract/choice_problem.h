// The problem of exact extraction, taken apart: what an e-node costs, needs before it, needs at
// all.
//
// Choose e-nodes so that every required class has one, every chosen e-node's children and needs
// have one, no chosen e-node is below itself by way of children, and the sum of costs is least.
// Reduce() makes the problem smaller without losing every optimum; Split() cuts what is left into
// parts that share nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "egraph/extract/node_graph.h"
#include "egraph/extract/time_limit.h"

namespace l3c::egraph {

inline constexpr uint32_t kNone = 0xffffffffu;  // no node, no class

struct ChoiceNode {
  uint32_t cls = 0;
  double cost = 0;
  std::vector<uint32_t> children;  // classes, ascending, each once: chosen, and before this one
  std::vector<uint32_t> needs;     // classes, ascending, none of the children: chosen, in any order
  bool alive = true;
};

struct ChoiceProblem {
  std::vector<ChoiceNode> nodes;
  std::vector<std::vector<uint32_t>> class_nodes;  // by class, ascending; the dead are taken out
  std::vector<uint8_t> required;                   // by class

  size_t class_count() const { return class_nodes.size(); }
  bool HasNegativeCosts() const;  // among what is alive
};

// Classes and e-nodes as in the graph. An e-node without a finite price or with an invalid child is
// dead. Roots must be valid. With several frequencies everything stands once at each of the levels:
// class c of the graph at level l is class c · levels + l, likewise e-nodes, whose children are of
// their own level and whose price is weighed by its frequency; roots are of level 0.
ChoiceProblem MakeChoiceProblem(const NodeGraph& graph, std::span<const double> prices,
                                std::span<const ClassRef> roots,
                                std::span<const double> frequencies = std::array{1.0});

enum class Reductions : uint8_t {
  // Only what is in no solution goes: e-nodes without an acyclic term, or out of reach; and
  // children that another child brings along.
  kFeasibility,
  // One optimum at least is kept. Not to be used where anything but the sum of costs counts, such
  // as further rows.
  kAll,
};

// Reduce() leaves this behind to make a choice for the smaller problem one for the larger.
struct ReducedChoice {
  bool feasible = true;
  double fixed_cost = 0;          // of e-nodes in every solution; they cost nothing any more
  std::vector<uint32_t> decided;  // by class: its only e-node where it was settled, else kNone
  uint64_t work = 0;              // steps taken
};
// Beyond the limits what could still be taken out stays.
struct ReduceLimits {
  uint64_t max_work = 1'000'000'000;  // steps of a few nanoseconds
  TimeLimit time;
};
ReducedChoice Reduce(ChoiceProblem& problem, Reductions reductions,
                     const ReduceLimits& limits = {});

// Strongly connected components of the classes, by children: what cycles can run through. By
// class: the number of its component, or kNone where it is on no cycle.
std::vector<uint32_t> CyclicComponents(const ChoiceProblem& problem);

struct ChoicePart {
  ChoiceProblem problem;
  std::vector<uint32_t> classes;  // by class of the part: the class of the whole
  std::vector<uint32_t> nodes;    // by e-node of the part: the e-node of the whole
};
// The parts that share no class, in order of their least class. Of the classes alive only.
std::vector<ChoicePart> Split(const ChoiceProblem& problem);

}  // namespace l3c::egraph
