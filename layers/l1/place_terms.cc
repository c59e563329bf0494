#include "layers/l1/place_terms.h"

#include <algorithm>
#include <limits>

#include "layers/l1/place_cuts.h"

namespace l3c::l1 {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::ParetoCost;

namespace {

constexpr double kNeverTaken = std::numeric_limits<double>::infinity();

}  // namespace

PlacementTerms::PlacementTerms(const System& system, const StepDemand& demand,
                               const PlacementModel& model, const PlacementFacts& facts,
                               const egraph::EGraph& graph, const egraph::EGraphView& view)
    : system_(system),
      demand_(demand),
      model_(model),
      facts_(facts),
      graph_(graph),
      view_(view),
      nodes_(view.node_count()) {
  ReadState();
  for (uint32_t i = 0; i < nodes_.size(); ++i) Read(ENodeRef{i}, nodes_[i]);
}

ParetoCost PlacementTerms::CostOf(ENodeRef node, const HeldChoices& held) const {
  for (const auto& [decision, label] : nodes_[node.index].labels) {
    const auto hold = held.find(decision);
    if (hold == held.end() || hold->second == label) continue;
    ParetoCost never{};
    never[kBytes] = kNeverTaken;
    return never;
  }
  return nodes_[node.index].cost;
}

// Which state an operation uses stands in the value that it makes.
void PlacementTerms::ReadState() {
  std::map<uint32_t, uint32_t> rests;  // by value: where the state rests that it is made of
  std::map<uint32_t, bool> several;    // by value: made of state that several nodes have
  const auto key = [&](egraph::Value value) { return graph_.Find(value).bits; };
  for (const char* function : {"ParamsFrom", "StateFrom"}) {
    graph_.ForEachRow(graph_.FindFunction(function), [&](const auto& row) {
      rests[key(row.output())] = *FindNode(system_, Text(row.arg(0)));
    });
  }
  for (const char* function : {"Params", "State"}) {
    graph_.ForEachRow(graph_.FindFunction(function), [&](const auto& row) {
      if (!FindNode(system_, Text(row.arg(0)))) several[key(row.output())] = true;
    });
  }
  graph_.ForEachRow(graph_.FindFunction("Op2"), [&](const auto& row) {
    const uint32_t state = key(row.arg(2));
    if (const auto from = rests.find(state); from != rests.end()) {
      rests[key(row.output())] = from->second;
    }
    if (several.contains(state)) several[key(row.output())] = true;
  });
  graph_.ForEachRow(graph_.FindFunction("Made"), [&](const auto& row) {
    const ClassRef c = view_.ClassOf(row.output());
    if (!c.valid()) return;
    const uint32_t value = key(row.arg(0));
    if (const auto from = rests.find(value); from != rests.end()) streamed_[c.index] = from->second;
    if (several.contains(value)) replicated_[c.index] = true;
  });
}

void PlacementTerms::Read(ENodeRef n, Node& node) const {
  const std::string& function = view_.function(n).name;
  const auto args = view_.NodeArgs(n);
  if (function == "Ahead") {
    const int64_t depth = graph_.AsI64(args[0]);
    node.cost[kBytes] = static_cast<double>(depth) * demand_.batch_bytes;
    node.labels = {{kDepthId, std::to_string(depth)}, {kStagingId, Text(args[1])}};
  } else if (function == "Move" || function == "Along") {
    const bool along = function == "Along";
    const std::string what = Text(args[1]);
    if (what == "batch") node.labels = {{kStagesId, along ? "fused" : "split"}};
    node.cost = MoveCost(what, Text(args[2]), Text(args[3]), along);
  } else if (function == "Beside") {
    // Gradients are read by the update from where the model has left them.
    if (Text(args[1]) != "parameters") return;
    const Site& site = *facts_.site_at.at(Text(args[3]));
    node.cost[kCompute] = model_.ReadInPlaceTime(*FindNode(system_, Text(args[2])), site);
  } else if (function == "Here") {
    // A batch that is used where it is staged.
    const ClassRef there = view_.NodeChildren(n)[0];
    if (there.valid() && view_.function(view_.FirstNode(there)).name == "Run1") {
      node.labels = {{kStagesId, ""}};
    }
  } else if (function == "StepAt") {
    const auto home = FindNode(system_, Text(args[0]));
    const bool beside = home && facts_.IsBeside(*home);
    node.labels = {{kStateId, beside ? "in " + Text(args[0]) : kResident}};
    if (home) return;
    // A copy for each node but the first, which is counted for all plans.
    const Site& site = *facts_.site_at.at(Text(args[0]));
    node.cost[kBytes] = static_cast<double>(site.parts() - 1) * demand_.state_bytes;
  } else if (function == "StepFrom") {
    node.labels = {{kStateId, "in " + Text(args[0])}};
  } else if (function == "CutAt") {
    const std::string cut = Text(args[1]);
    const int64_t parts = graph_.AsI64(args[2]);
    const Site& site = *facts_.site_at.at(Text(args[0]));
    node.labels = {{kCutId, cut}, {kMicroId, std::to_string(parts)}};
    const auto at = std::find_if(site.cuts.begin(), site.cuts.end(),
                                 [&](const auto& c) { return CutLabel(c) == cut; });
    node.cost[kCompute] = model_.StagesTime(site, *at, parts);
  } else if (function == "RingSum") {
    const Site& site = *facts_.site_named.at(Text(args[0]));
    node.cost[kCompute] = model_.RingTime(site);
    node.cost[kBytes] = static_cast<double>(site.parts()) * demand_.gradient_bytes;
  } else if (function == "Run1" || function == "Run2" || function == "Rerun2" ||
             function == "Pipe2") {
    ReadOperation(n, node);
  }
}

void PlacementTerms::ReadOperation(ENodeRef n, Node& node) const {
  const auto args = view_.NodeArgs(n);
  const std::string& function = view_.function(n).name;
  const std::string op = Text(args[0]);
  const Site& site = *facts_.site_named.at(Text(args[1]));
  const uint32_t made = view_.NodeClass(n).index;
  node.site = &site;
  node.labels = {{NodeDecision(op), site.name}};
  const auto from = streamed_.find(made);
  const bool streams = from != streamed_.end();
  if (op == "load") {
    node.cost[kLoad] = model_.LoadTime(site.nodes[0], site.memories[0]);
  } else if (op == "forward_backward") {
    node.labels.emplace_back(kPartitionId, PartitionOf(site));
    node.labels.emplace_back(kGradientsId, !site.shares_batch()         ? ""
                                           : replicated_.contains(made) ? kRing
                                                                        : kGather);
    if (function == "Pipe2") return;
    node.labels.insert(node.labels.end(), {{kCutId, ""}, {kMicroId, ""}});
    node.cost[kCompute] =
        (streams ? model_.StreamedModelTime(from->second, site) : model_.ModelTime(site)) *
        (function == "Rerun2" ? kRecomputeFactor : 1);
  } else if (site.parts() > 1) {
    node.cost[kCompute] = model_.ReplicatedUpdateTime(site);
  } else {
    node.cost[kCompute] = streams ? model_.StreamedUpdateTime(from->second, site)
                                  : model_.UpdateTime(site.nodes[0], site.memories[0]);
  }
}

ParetoCost PlacementTerms::MoveCost(const std::string& what, const std::string& from,
                                    const std::string& to, bool along) const {
  ParetoCost cost{};
  // Batches and parameters come from one memory, gradients go to one.
  const bool back = what == "gradients";
  const auto memory = FindNode(system_, back ? to : from);
  const auto site = facts_.site_at.find(back ? from : to);
  if (!memory || site == facts_.site_at.end()) {
    cost[kBytes] = kNeverTaken;
    return cost;
  }
  const double parts = static_cast<double>(site->second->parts());
  if (what == "data") {
    cost[kLoad] = model_.ReadTime(*memory, site->second->memories[0]);
  } else if (what == "batch") {
    const double time = model_.BatchTime(*memory, *site->second);
    cost[along ? kLoad : kCarry] = time + (along ? 0 : kHandOver);
    cost[kBytes] = demand_.batch_bytes;
  } else if (back) {
    cost[kCompute] = model_.GradientTime(*site->second, *memory);
    cost[kBytes] = parts * demand_.gradient_bytes;
  } else {
    cost[kCompute] = model_.ParameterTime(*memory, *site->second);
    cost[kBytes] = parts * demand_.parameter_bytes;
  }
  return cost;
}

}  // namespace l3c::l1
