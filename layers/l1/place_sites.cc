#include "layers/l1/place_sites.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "layers/l1/place_cuts.h"

namespace l3c::l1 {
namespace {

using Nodes = std::vector<uint32_t>;

class SiteFinder {
 public:
  SiteFinder(const System& system, const StepDemand& demand, const PlacementModel& model,
             const Nodes& nodes, int64_t most_in_flight)
      : system_(system),
        demand_(demand),
        model_(model),
        nodes_(nodes),
        most_in_flight_(most_in_flight) {}

  std::vector<Site> Find() {
    AddSingle();
    for (const bool in_stages : {false, true}) {
      for (size_t parts = 2; parts <= std::min(nodes_.size(), kMaxSharing); ++parts) {
        const bool can =
            in_stages ? demand_.CanBeStages(parts) : demand_.CanShare(static_cast<int64_t>(parts));
        if (!can) continue;
        for (Nodes& set : SetsOf(parts, in_stages)) AddSeveral(std::move(set), in_stages);
      }
    }
    return std::move(sites_);
  }

 private:
  void AddSingle() {
    for (uint32_t node : nodes_) {
      for (uint32_t memory : LocalMemories(system_, node)) {
        Site site;
        site.name = system_.nodes[node].name;
        site.place = system_.nodes[memory].name;
        site.beside = memory != MemoryOf(system_, node);
        site.label = site.name + (site.beside ? "@" + site.place : "");
        site.nodes = {node};
        site.memories = {memory};
        sites_.push_back(std::move(site));
      }
    }
  }

  void AddSeveral(Nodes set, bool in_stages) {
    Site site;
    site.in_stages = in_stages;
    site.nodes = in_stages ? DataflowOrder(std::move(set)) : std::move(set);
    for (uint32_t node : site.nodes) {
      site.memories.push_back(MemoryOf(system_, node));
      site.label += (site.label.empty() ? "" : in_stages ? ">" : "+") + system_.nodes[node].name;
    }
    site.name = site.place = site.label;
    if (in_stages) FindCuts(demand_, model_, most_in_flight_, site);
    if (!in_stages || !site.cuts.empty()) sites_.push_back(std::move(site));
  }

  // The fastest first; as given where they are equal.
  Nodes Fastest(size_t count) const {
    Nodes fastest = nodes_;
    std::stable_sort(fastest.begin(), fastest.end(), [&](uint32_t a, uint32_t b) {
      return AssumedFlops(system_.nodes[a]) > AssumedFlops(system_.nodes[b]);
    });
    fastest.resize(std::min(fastest.size(), count));
    return fastest;
  }

  std::vector<Nodes> SetsOf(size_t parts, bool in_stages) const {
    std::vector<Nodes> sets;
    std::set<Nodes> known;
    const auto add = [&](Nodes set) {
      std::sort(set.begin(), set.end());
      if (known.insert(set).second) sets.push_back(std::move(set));
    };
    Nodes few = Fastest(kAllSets);
    std::sort(few.begin(), few.end());
    for (uint32_t chosen = 0; chosen < 1u << few.size(); ++chosen) {
      if (static_cast<size_t>(std::popcount(chosen)) != parts) continue;
      Nodes set;
      for (size_t i = 0; i < few.size(); ++i) {
        if ((chosen >> i & 1) != 0) set.push_back(few[i]);
      }
      add(std::move(set));
    }
    if (nodes_.size() <= kAllSets) return sets;
    if (in_stages && parts <= kAllSets) return sets;
    add(Fastest(parts));
    if (in_stages) return sets;
    for (uint32_t node : nodes_) add(Around(node, parts));
    return sets;
  }

  // The nodes with the widest paths, there and back, to any that are in; of equal ones the fastest.
  Nodes Around(uint32_t first, size_t count) const {
    Nodes set = {first};
    while (set.size() < count) {
      std::pair<double, double> best;
      const uint32_t* next = nullptr;
      for (const uint32_t& node : nodes_) {
        if (std::find(set.begin(), set.end(), node) != set.end()) continue;
        double width = 0;
        for (uint32_t in : set) {
          const uint32_t a = MemoryOf(system_, in), b = MemoryOf(system_, node);
          width = std::max(width, std::min(model_.PathRate(a, b), model_.PathRate(b, a)));
        }
        const std::pair<double, double> rank{width, AssumedFlops(system_.nodes[node])};
        if (next != nullptr && rank <= best) continue;
        best = rank;
        next = &node;
      }
      set.push_back(*next);
    }
    return set;
  }

  // The nodes in the order that a batch goes through them: first the one with the widest path from
  // a storage, then over the widest path from one to the next; as given where those are equal.
  Nodes DataflowOrder(Nodes nodes) const {
    const auto from_storage = [&](uint32_t node) {
      double widest = 0;
      for (uint32_t n = 0; n < system_.nodes.size(); ++n) {
        if (system_.nodes[n].kind != NodeKind::kStorage) continue;
        widest = std::max(widest, model_.PathRate(n, MemoryOf(system_, node)));
      }
      return widest;
    };
    Nodes order;
    while (!nodes.empty()) {
      const auto width = [&](uint32_t node) {
        return order.empty()
                   ? from_storage(node)
                   : model_.PathRate(MemoryOf(system_, order.back()), MemoryOf(system_, node));
      };
      auto next = nodes.begin();
      for (auto it = nodes.begin() + 1; it != nodes.end(); ++it) {
        if (width(*it) > width(*next)) next = it;
      }
      order.push_back(*next);
      nodes.erase(next);
    }
    return order;
  }

  const System& system_;
  const StepDemand& demand_;
  const PlacementModel& model_;
  const Nodes& nodes_;
  const int64_t most_in_flight_;
  std::vector<Site> sites_;
};

}  // namespace

std::vector<Site> SitesOf(const System& system, const StepDemand& demand,
                          const PlacementModel& model, const std::vector<uint32_t>& nodes,
                          int64_t most_in_flight) {
  return SiteFinder(system, demand, model, nodes, most_in_flight).Find();
}

}  // namespace l3c::l1
