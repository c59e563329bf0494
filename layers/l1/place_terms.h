// What the e-nodes of the placements' e-graph cost by themselves, and the choices that they stand
// for. The sum over a term is the cost of a placement.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/pareto.h"
#include "egraph/view.h"
#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/place_facts.h"
#include "layers/l1/place_model.h"

namespace l3c::l1 {

// Components of the cost: what the loading stage takes, what a stage that carries batches takes,
// what the rest does; and the bytes that lie somewhere for it, which decide between equal times.
enum PlacementComponent : size_t { kLoad, kCarry, kCompute, kBytes, kPlacementComponents };

// What a plan is held to: decision → label.
using HeldChoices = std::map<std::string, std::string>;

class PlacementTerms {
 public:
  // All must outlive this; the graph is saturated.
  PlacementTerms(const System& system, const StepDemand& demand, const PlacementModel& model,
                 const PlacementFacts& facts, const egraph::EGraph& graph,
                 const egraph::EGraphView& view);

  // Infinite where an e-node stands for another choice than the plan is held to.
  egraph::ParetoCost CostOf(egraph::ENodeRef node, const HeldChoices& held) const;
  // Decision, label; "" where the decision is none with the e-node.
  const std::vector<std::pair<std::string, std::string>>& LabelsOf(egraph::ENodeRef node) const {
    return nodes_[node.index].labels;
  }
  // Of an operation, where it is; nullptr of others.
  const Site* SiteOf(egraph::ENodeRef node) const { return nodes_[node.index].site; }

 private:
  struct Node {
    egraph::ParetoCost cost{};
    std::vector<std::pair<std::string, std::string>> labels;
    const Site* site = nullptr;
  };

  void ReadState();
  void Read(egraph::ENodeRef n, Node& node) const;
  void ReadOperation(egraph::ENodeRef n, Node& node) const;
  egraph::ParetoCost MoveCost(const std::string& what, const std::string& from,
                              const std::string& to, bool along) const;
  std::string Text(egraph::Value value) const { return graph_.AsString(value); }

  const System& system_;
  const StepDemand& demand_;
  const PlacementModel& model_;
  const PlacementFacts& facts_;
  const egraph::EGraph& graph_;
  const egraph::EGraphView& view_;
  // By class of the operations that use the state: where it rests that is brought in; and those
  // that every node of a site does on state of its own.
  std::map<uint32_t, uint32_t> streamed_;
  std::map<uint32_t, bool> replicated_;
  std::vector<Node> nodes_;  // by e-node
};

}  // namespace l3c::l1
