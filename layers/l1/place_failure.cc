#include "layers/l1/place_failure.h"

#include <algorithm>
#include <limits>
#include <set>

#include "layers/support/units.h"

namespace l3c::l1 {
namespace {

constexpr double kUnreached = std::numeric_limits<double>::infinity();

std::string NamesOf(const System& system, const std::vector<uint32_t>& nodes) {
  std::string text;
  for (uint32_t node : nodes) text += (text.empty() ? "" : ", ") + system.nodes[node].name;
  return text;
}

std::string SizeText(double bytes) {
  return support::PrintBytes(static_cast<int64_t>(std::min(bytes, 9e18)));
}

// The shortest path along edges, both ends included; empty where there is none.
std::vector<uint32_t> ShortestPath(const System& system, uint32_t from, uint32_t to) {
  std::vector<std::optional<uint32_t>> before(system.nodes.size());
  std::vector<uint32_t> reached = {from};
  before[from] = from;
  for (size_t i = 0; i < reached.size() && !before[to]; ++i) {
    for (const Edge& edge : system.edges) {
      const auto step = [&](uint32_t a, uint32_t b) {
        if (a != reached[i] || before[b]) return;
        before[b] = a;
        reached.push_back(b);
      };
      step(edge.from, edge.to);
      if (edge.both_ways) step(edge.to, edge.from);
    }
  }
  if (!before[to]) return {};
  std::vector<uint32_t> path = {to};
  while (path.back() != from) path.push_back(*before[path.back()]);
  std::reverse(path.begin(), path.end());
  return path;
}

// Of two places that values go between, there and back.
std::optional<PlacementCause> WhyNotBothWays(const System& system, uint32_t a, uint32_t b) {
  if (auto cause = WhyNoCopy(system, a, b)) return cause;
  return WhyNoCopy(system, b, a);
}

class Finder {
 public:
  Finder(const System& system, const StepDemand& demand, const PlacementModel& model,
         const PlacementFacts& facts, const std::map<std::string, std::string>& held)
      : system_(system), demand_(demand), model_(model), facts_(facts), held_(held) {}

  PlacementCause Find() const {
    if (auto cause = WhyNoLoading()) return *cause;
    const std::string asked = Asked(NodeDecision("forward_backward"));
    const std::string computes = "the model cannot be computed on ";
    if (auto cause = WhyOnlyOneNode(asked)) return *cause;
    // Of the node that is asked for, else of the first that does not do.
    if (const auto why = facts_.why_not.find(asked); why != facts_.why_not.end()) {
      return TooSmall(computes + asked + ": " + why->second);
    }
    for (const Site& site : facts_.sites) {
      if (site.beside || (!asked.empty() && site.name != asked)) continue;
      if (auto cause = WhyNotReached(site)) {
        return {computes + site.name + ": " + cause->reason, cause->hint};
      }
    }
    if (auto cause = WhyNoUpdate()) return *cause;
    if (!facts_.why_not.empty()) {
      const auto& [site, why] = *facts_.why_not.begin();
      return TooSmall(computes + site + ": " + why);
    }
    if (!held_.empty()) {
      std::string all;
      for (const auto& [id, label] : held_) all += (all.empty() ? "" : ", ") + id + "=" + label;
      return {"no placement has all that is asked for: " + all,
              "ask for less: --explain lists what there is"};
    }
    return {"no path of edges carries the batch and the state to where they are needed",
            "add the missing edges between the memories"};
  }

 private:
  std::string Asked(const std::string& decision) const {
    const auto it = held_.find(decision);
    return it == held_.end() ? "" : it->second;
  }
  const std::string& Name(uint32_t node) const { return system_.nodes[node].name; }

  static PlacementCause TooSmall(std::string reason) {
    return {std::move(reason),
            "use smaller batches, a smaller model or an update with less state, or give the memory "
            "what it needs"};
  }

  // Why no batch can be drawn; nothing where one can.
  std::optional<PlacementCause> WhyNoLoading() const {
    if (facts_.ChoicesOf(NodeDecision("load")).empty()) {
      return PlacementCause{
          "no node of the system can draw batches: files are read by a host's processor, and all "
          "compute nodes are accelerators with memory of their own",
          "add a compute node without vram, and a memory node with an edge to it"};
    }
    if (facts_.stagings.empty()) {
      return PlacementCause{
          "no compute node has an edge with a memory node that a batch could be drawn into",
          "add a memory node and an edge"};
    }
    for (uint32_t staging : facts_.stagings) {
      if (model_.ReadTime(facts_.storage, staging) < kUnreached) return std::nullopt;
    }
    const uint32_t first = facts_.stagings.front();
    if (HasPath(system_, facts_.storage, first) || HasPath(system_, first, facts_.storage)) {
      const PlacementCause cause = *WhyNoCopy(system_, facts_.storage, first);
      return PlacementCause{"no batch can be read: " + cause.reason, cause.hint};
    }
    return PlacementCause{"no path of edges leads from " + Name(facts_.storage) + " to " +
                              NamesOf(system_, facts_.stagings) + ", where batches are drawn into",
                          "add an edge " + Name(facts_.storage) + " -> " + Name(first)};
  }

  // State that no memory of a node holds is brought in to one node.
  std::optional<PlacementCause> WhyOnlyOneNode(const std::string& asked) const {
    if (!facts_.homes.empty() || facts_.streams.empty()) return std::nullopt;
    const std::string partition = Asked(kPartitionId);
    const bool several = std::any_of(facts_.sites.begin(), facts_.sites.end(), [&](const Site& s) {
      return s.parts() > 1 && s.name == asked;
    });
    if (!several && (partition.empty() || partition == "whole")) return std::nullopt;
    return PlacementCause{(several ? asked : partition) + ": " + facts_.why_one_node,
                          "give the memory of a node room for the state, " +
                              SizeText(demand_.state_bytes) + ", or leave the model on one node"};
  }

  // Nothing where a batch gets to a site, and state there and gradients back.
  std::optional<PlacementCause> WhyNotReached(const Site& site) const {
    std::vector<uint32_t> filled = facts_.stagings;
    std::erase_if(filled, [&](uint32_t staging) {
      return model_.ReadTime(facts_.storage, staging) == kUnreached;
    });
    const auto batch = [&](uint32_t from) { return model_.BatchTime(from, site) < kUnreached; };
    if (std::none_of(filled.begin(), filled.end(), batch)) {
      for (uint32_t memory : site.memories) {
        if (auto cause = WhyNoCopy(system_, filled.front(), memory)) return cause;
      }
    }
    if (facts_.homes.empty()) return std::nullopt;
    const auto served = [&](uint32_t home) {
      return model_.Reaches(site, home) || (model_.ParameterTime(home, site) < kUnreached &&
                                            model_.GradientTime(site, home) < kUnreached);
    };
    if (std::any_of(facts_.homes.begin(), facts_.homes.end(), served)) return std::nullopt;
    for (uint32_t memory : site.memories) {
      if (auto cause = WhyNotBothWays(system_, facts_.homes.front(), memory)) return cause;
    }
    return std::nullopt;
  }

  // Of a node that is asked to keep the state.
  std::optional<PlacementCause> WhyNoUpdate() const {
    const std::string asked = Asked(NodeDecision("model_state"));
    const auto node = FindNode(system_, asked);
    if (asked.empty() || !node) return std::nullopt;
    const std::string reason = "the state cannot be kept by " + asked + ": ";
    for (uint32_t memory : LocalMemories(system_, *node)) {
      if (!model_.StateFits(memory)) {
        return TooSmall(reason + "it is larger than " + Name(memory) + ", which has " +
                        SizeText(model_.Capacity(memory)));
      }
      const std::string model = Asked(NodeDecision("forward_backward"));
      for (const Site& site : facts_.sites) {
        if (site.beside || (!model.empty() && site.name != model)) continue;
        for (uint32_t other : site.memories) {
          if (auto cause = WhyNotBothWays(system_, memory, other)) {
            return PlacementCause{reason + cause->reason, cause->hint};
          }
        }
      }
    }
    return std::nullopt;
  }

  const System& system_;
  const StepDemand& demand_;
  const PlacementModel& model_;
  const PlacementFacts& facts_;
  const std::map<std::string, std::string>& held_;
};

}  // namespace

std::optional<PlacementCause> WhyNoCopy(const System& system, uint32_t from, uint32_t to) {
  if (WidestPath(system, from, to) > 0) return std::nullopt;
  const std::string& a = system.nodes[from].name;
  const std::string& b = system.nodes[to].name;
  const std::vector<uint32_t> path = ShortestPath(system, from, to);
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    const SystemNode& node = system.nodes[path[i]];
    if (!HoldsBuffers(node) && node.kind != NodeKind::kStorage) continue;
    return PlacementCause{"the way from " + a + " to " + b + " leads through " + node.name +
                              ", and one copy passes through no other memory",
                          "add an edge " + a + " <-> " + b};
  }
  if (!ShortestPath(system, to, from).empty()) {
    return PlacementCause{
        "edges lead from " + b + " to " + a + ", but none lead from " + a + " to " + b,
        "let the edges between them go both ways (<->)"};
  }
  return PlacementCause{"no path of edges leads from " + a + " to " + b,
                        "add an edge " + a + " <-> " + b};
}

PlacementCause WhyNoHome(const System& system, const StepDemand& demand,
                         const PlacementModel& model, const std::vector<uint32_t>& near) {
  const std::string need = "parameters and optimiser state need " + SizeText(demand.state_bytes);
  const std::string less = "use a smaller model, or an update with less state";
  for (uint32_t n = 0; n < system.nodes.size(); ++n) {
    const SystemNode& node = system.nodes[n];
    if (!HoldsBuffers(node) || !model.StateFits(n)) continue;
    const std::string room = need + ": " + node.name + " has room, but ";
    if (node.kind == NodeKind::kCompute) {
      return {room + "that node is not used (--explain says why)", less};
    }
    if (!demand.why_beside_state.empty()) {
      return {room + "no node works in it, and " + demand.why_beside_state,
              less + ", or an edge from a compute node to " + node.name};
    }
    for (uint32_t memory : near) {
      if (auto cause = WhyNotBothWays(system, n, memory)) {
        return {room + cause->reason, cause->hint};
      }
    }
  }
  return {need + ", more than any memory of the system has", less + ", or give a memory that much"};
}

PlacementCause WhyNoPlacement(const System& system, const StepDemand& demand,
                              const PlacementModel& model, const PlacementFacts& facts,
                              const std::map<std::string, std::string>& held) {
  return Finder(system, demand, model, facts, held).Find();
}

std::string WhyNoChoice(const StepDemand& demand, const PlacementFacts& facts,
                        const std::string& decision, const std::string& label) {
  if (decision != kPartitionId) return "";
  if (facts.out_of_order.contains(label)) return std::string(": ") + kWhyOutOfOrder;
  if (!demand.why_beside_state.empty()) return ": " + demand.why_beside_state;
  for (const auto& [parts, why] : demand.why_not_shared) {
    const bool asked = label == "data(" + std::to_string(parts) + ")" ||
                       (label.starts_with("stages(") && parts == 2);
    if (asked) return ": " + why;
  }
  return "";
}

std::string WhyNoPlanWith(const System& system, const PlacementModel& model,
                          const PlacementFacts& facts, const std::string& decision,
                          const std::string& label) {
  if (decision == NodeDecision("forward_backward")) {
    if (const auto why = facts.why_not.find(label); why != facts.why_not.end()) return why->second;
  }
  if (decision == kGradientsId && label == "ring") return facts.why_no_ring;
  if (decision == NodeDecision("model_state")) {
    const auto node = FindNode(system, label);
    if (!node) return "";
    for (uint32_t memory : LocalMemories(system, *node)) {
      if (!model.StateFits(memory)) {
        return "state larger than " + system.nodes[memory].name + "'s memory";
      }
    }
  }
  if (decision == kStagingId || decision == NodeDecision("load")) {
    const uint32_t node = *FindNode(system, label);
    const std::vector<uint32_t> memories =
        decision == kStagingId ? std::vector<uint32_t>{node} : LocalMemories(system, node);
    const bool reached = std::any_of(memories.begin(), memories.end(), [&](uint32_t memory) {
      return model.ReadTime(facts.storage, memory) < kUnreached;
    });
    if (!reached)
      return "no path of edges leads from " + system.nodes[facts.storage].name + " to it";
  }
  if (decision == kDepthId) {
    const auto why = facts.why_not_depth.find(std::stoll(label));
    if (why != facts.why_not_depth.end()) return why->second;
  }
  return "";
}

}  // namespace l3c::l1
