// Placement on small random systems: it agrees with a brute-force enumeration, what it places fits,
// and every loser can be forced.
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/place.h"
#include "tests/layers/l1/place_brute_force.h"
#include "tests/layers/l1/place_fixtures.h"

namespace l3c::l1 {
namespace {

class RandomSystems {
 public:
  explicit RandomSystems(unsigned seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  // Hosts with a memory each, GPUs beside them; not everything is connected, little is large.
  std::string Text(int most_gpus) {
    std::string nodes = "node ssd_0 { kind: storage }\n";
    std::string edges;
    const int memories = 1 + Below(2);
    for (int m = 0; m < memories; ++m) {
      const std::string n = std::to_string(m);
      nodes += "node ram_" + n + " { kind: memory, capacity: " + Capacity() + " }\n";
      if (m == 0 || Below(2) == 0) edges += "ssd_0 -> ram_" + n + " : bandwidth " + Rate(4);
      nodes += "node cpu_" + n +
               " { kind: compute, isa: x86_64, cores: " + std::to_string(1 + Below(16)) + " }\n";
      edges += "ram_" + n + " <-> cpu_" + n + " : bandwidth " + Rate(50);
      if (m > 0) edges += "cpu_0 <-> cpu_1 : bandwidth " + Rate(20);
    }
    for (int g = 0, gpus = Below(most_gpus + 1); g < gpus; ++g) {
      const std::string n = std::to_string(g);
      nodes += "node gpu_" + n + " { kind: compute, isa: cuda, vram: " + Capacity() +
               ", sm: " + std::to_string(1 + Below(80)) + " }\n";
      edges +=
          "cpu_" + std::to_string(Below(memories)) + " <-> gpu_" + n + " : bandwidth " + Rate(32);
      if (g > 0 && Below(2) == 0) edges += "gpu_0 <-> gpu_" + n + " : bandwidth " + Rate(300);
    }
    return nodes + "edges {\n" + edges + "}\n";
  }

  StepDemand Work() {
    StepDemand demand = Demand(0.01 * (1 + Below(100000)));
    demand.batch_bytes = 1e4 * (1 + Below(1000));
    demand.parameter_bytes = 1e4 * (1 + Below(1000));
    demand.gradient_bytes = demand.parameter_bytes;
    demand.state_bytes = 3 * demand.parameter_bytes;
    demand.activation_bytes = 1e4 * Below(3000);
    demand.parameters = 4;
    demand.largest_bytes = demand.parameter_bytes / 4;
    if (Below(2) == 0) demand.shares = {2, 4};
    if (Below(8) == 0) demand.why_beside_state = "it must";
    if (Below(2) == 0) return demand;
    const int layers = 2 + Below(4);
    for (int layer = 0; layer < layers; ++layer) {
      LayerWork& work = demand.layers.emplace_back();
      work.flops = demand.model_flops / layers * (0.5 + 0.1 * Below(11));
      work.parameter_bytes = demand.parameter_bytes / layers;
      work.forward_bytes = 1e4 * Below(30);
      work.backward_bytes = work.forward_bytes;
    }
    demand.micro_batches = {2, 4, 8};
    return demand;
  }

 private:
  std::string Rate(int most) { return std::to_string(1 + Below(most)) + "GB/s\n"; }
  std::string Capacity() { return std::to_string(5 * (1 + Below(20))) + "MB"; }

  std::mt19937 random_;
};

TEST(L1PlaceTest, AgreesWithBruteForceOnRandomSystems) {
  RandomSystems random(7);
  int placed = 0, shared = 0, staged = 0, split = 0, rings = 0;
  for (int round = 0; round < 80; ++round) {
    const std::string text = random.Text(3);
    const System system = SystemOf(text);
    StepDemand demand = random.Work();
    demand.why_beside_state.clear();
    const int64_t depth = 1 + random.Below(3);
    const double best = BruteForce(system, demand).Best(depth);
    const PlacementResult result = Place(system, demand, kBoth, depth, {});
    ASSERT_EQ(result.placement.has_value(), best < std::numeric_limits<double>::infinity()) << text;
    if (!result.placement) continue;
    ++placed;
    const bool several = result.placement->model.size() > 1;
    shared += several && result.placement->stage_of.empty();
    staged += several && !result.placement->stage_of.empty();
    split += result.placement->own_transfer;
    rings += result.placement->replicated;
    const double ours = result.explanation.decisions[0].cost[0].value;
    EXPECT_NEAR(ours, best, 1e-12 * ours) << text;

    // The other modes are no better.
    for (const search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy}) {
      search::LoweringOptions options;
      options.mode = mode;
      const PlacementResult other = Place(system, demand, kBoth, depth, options);
      ASSERT_TRUE(other.placement) << text;
      EXPECT_GE(other.explanation.decisions[0].cost[0].value, ours * (1 - 1e-12));
    }
  }
  // All of it occurs.
  EXPECT_GT(placed, 30);
  EXPECT_GT(shared, 3);
  EXPECT_GT(staged, 3);
  EXPECT_GT(split, 0);
  EXPECT_GT(rings, 3);
}

TEST(L1PlaceTest, EveryLoserOfRandomSystemsCanBeForced) {
  RandomSystems random(5);
  std::map<std::string, int> forced_losers;  // by decision
  for (int round = 0; round < 12; ++round) {
    const std::string text = random.Text(2);
    const System system = SystemOf(text);
    const StepDemand demand = random.Work();
    const PlacementResult free = Place(system, demand, kBoth, 3, {});
    for (const search::Decision& decision : free.explanation.decisions) {
      for (size_t i = 0; i < decision.losers.size() && i < 3; ++i) {
        search::LoweringOptions options;
        options.forced[decision.id] = decision.losers[i].label;
        const PlacementResult forced = Place(system, demand, kBoth, 3, options);
        ASSERT_TRUE(forced.placement) << text << decision.id;
        const search::Decision* again = forced.explanation.Find(decision.id);
        ASSERT_NE(again, nullptr) << text << decision.id << "=" << decision.losers[i].label;
        EXPECT_EQ(again->chosen, decision.losers[i].label);
        EXPECT_EQ(again->cost[0].value, decision.losers[i].cost[0].value) << text << decision.id;
        ++forced_losers[decision.id];
      }
    }
  }
  for (const char* id : {"l1/node.load", "l1/node.forward_backward", "l1/node.model_state",
                         "l1/partition", "l1/gradients", "l1/stages", "l1/pipeline_depth"}) {
    EXPECT_GT(forced_losers[id], 0) << id;
  }
}

// What is placed fits, wherever the search ends: with what is forced, and in every mode.
TEST(L1PlaceTest, NothingIsPlacedWhereItDoesNotFit) {
  RandomSystems random(11);
  int checked = 0;
  for (int round = 0; round < 25; ++round) {
    const std::string text = random.Text(2);
    const System system = SystemOf(text);
    const StepDemand demand = random.Work();
    search::LoweringOptions options;
    options.mode = static_cast<search::Mode>(random.Below(3));
    const PlacementResult free = Place(system, demand, kBoth, 3, options);
    std::vector<PlacementResult> results = {free};
    for (const search::Decision& decision : free.explanation.decisions) {
      if (decision.losers.empty()) continue;
      search::LoweringOptions forced = options;
      const size_t loser = static_cast<size_t>(random.Below(8)) % decision.losers.size();
      forced.forced[decision.id] = decision.losers[loser].label;
      results.push_back(Place(system, demand, kBoth, 3, forced));
    }
    for (const PlacementResult& result : results) {
      if (!result.placement) continue;
      ++checked;
      const Placement& place = *result.placement;
      std::map<uint32_t, double> bytes;
      const double parts = static_cast<double>(place.model.size());
      const double batches = static_cast<double>(place.pipeline_depth) * demand.batch_bytes;
      bytes[place.staging] += batches;
      for (size_t copy = 0; copy < (place.replicated ? place.model.size() : 1); ++copy) {
        const uint32_t home = place.rests.value_or(place.home);
        bytes[place.replicated ? place.resident[copy] : home] += demand.state_bytes;
      }
      // Of state that is brought in, two layers' and a gradient.
      if (place.rests) bytes[place.home] += 7 * demand.largest_bytes;
      for (size_t i = 0; i < place.resident.size(); ++i) {
        const uint32_t memory = place.resident[i];
        if (memory != place.staging) bytes[memory] += batches / parts;
        double own = demand.parameter_bytes + demand.gradient_bytes;
        if (!place.stage_of.empty()) {
          own = 0;
          for (size_t l = 0; l < place.stage_of.size(); ++l) {
            if (place.stage_of[l] == i) own += 2 * demand.layers[l].parameter_bytes;
          }
        }
        if (memory != place.home && !place.replicated) bytes[memory] += own;
      }
      for (const auto& [memory, sum] : bytes) {
        EXPECT_LE(sum, static_cast<double>(BufferCapacity(system.nodes[memory]))) << text;
      }
      if (!place.stage_of.empty()) {
        EXPECT_EQ(place.stage_of.size(), demand.layers.size());
        EXPECT_EQ(place.stage_of.back() + 1, place.model.size());
      }
      for (size_t i = 0; i < place.model.size(); ++i) {
        const auto local = LocalMemories(system, place.model[i]);
        EXPECT_NE(std::find(local.begin(), local.end(), place.resident[i]), local.end());
      }
      if (!demand.why_beside_state.empty()) {
        EXPECT_EQ(place.resident[0], place.home) << text;
      }
    }
  }
  EXPECT_GT(checked, 40);
}

TEST(L1PlaceTest, AFasterNodeMoreNeverMakesAStepSlower) {
  RandomSystems random(13);
  for (int round = 0; round < 20; ++round) {
    const std::string text = random.Text(2);
    const StepDemand demand = random.Work();
    const PlacementResult before = Place(SystemOf(text), demand, kBoth, 2, {});
    if (!before.placement) continue;
    std::string more = text;
    more.insert(more.find("edges {"),
                "node fast { kind: compute, isa: cuda, vram: 80GB, sm: 132 }\n");
    more.insert(more.rfind("}"), "cpu_0 <-> fast : bandwidth 64GB/s\n");
    const PlacementResult after = Place(SystemOf(more), demand, kBoth, 2, {});
    ASSERT_TRUE(after.placement) << more;
    EXPECT_LE(after.explanation.decisions[0].cost[0].value,
              before.explanation.decisions[0].cost[0].value)
        << more;
  }
}

}  // namespace
}  // namespace l3c::l1
