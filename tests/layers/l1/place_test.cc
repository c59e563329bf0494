// Placement: a real choice between nodes, its explanation, its failures; and agreement with a
// brute-force enumeration on small random systems.
#include <limits>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "layers/l1/discover.h"
#include "layers/l1/place.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

System SystemOf(const std::string& body) {
  const auto program = ParseText("system s {\n" + body + "}\n");
  return program ? program->system : System{};
}

System GpuBox() {
  return SystemOf(
      "node ssd_0 { kind: storage }\n"
      "node ram_0 { kind: memory, capacity: 32GB }\n"
      "node cpu_0 { kind: compute, isa: x86_64, cores: 8, features: [avx2, fma] }\n"
      "node gpu_0 { kind: compute, isa: cuda, vram: 24GB, sm: 84 }\n"
      "edges {\n"
      "    ssd_0 -> ram_0 : bandwidth 2GB/s\n"
      "    ram_0 <-> cpu_0 : bandwidth 50GB/s\n"
      "    cpu_0 <-> gpu_0 : bandwidth 32GB/s\n"
      "}\n");
}

StepDemand Demand(double gflop) {
  StepDemand demand;
  demand.model_flops = gflop * 1e9;
  demand.update_flops = 4e6;
  demand.batch_bytes = 4e5;
  demand.gradient_bytes = 1e6;
  demand.parameter_bytes = 1e6;
  demand.state_bytes = 3e6;
  return demand;
}

const std::vector<std::string> kBoth = {"x86_64", "cuda"};

TEST(L1PlaceTest, LargeModelsGoToTheFasterNode) {
  const System system = GpuBox();
  const PlacementResult result = Place(system, Demand(100), kBoth, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->model].name, "gpu_0");
  EXPECT_EQ(system.nodes[result.placement->update].name, "gpu_0");
  EXPECT_EQ(system.nodes[result.placement->loader].name, "cpu_0");
  EXPECT_EQ(system.nodes[result.placement->staging].name, "ram_0");
  EXPECT_EQ(system.nodes[result.placement->resident].name, "gpu_0");
  EXPECT_EQ(result.placement->pipeline_depth, 2);

  const search::Decision* decision = result.explanation.Find("l1/node.forward_backward");
  ASSERT_NE(decision, nullptr);
  EXPECT_EQ(decision->chosen, "gpu_0");
  ASSERT_EQ(decision->losers.size(), 1u);
  EXPECT_EQ(decision->losers[0].label, "cpu_0");
  EXPECT_GT(decision->losers[0].difference[0].value, 0);
  EXPECT_EQ(decision->losers[0].decided_by, "step_time (computing)");
  ASSERT_FALSE(decision->rules.empty());
  EXPECT_EQ(decision->rules[0].file, "rewrites/placement.egg");
  EXPECT_GT(decision->rules[0].line, 0);
}

TEST(L1PlaceTest, WithoutABackendANodeIsPruned) {
  const System system = GpuBox();
  const PlacementResult result = Place(system, Demand(100), {"x86_64"}, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->model].name, "cpu_0");
  ASSERT_EQ(result.explanation.pruned.size(), 1u);
  EXPECT_EQ(result.explanation.pruned[0].what, "node gpu_0");
}

TEST(L1PlaceTest, AForcedLoserComesOutAtTheCostThatWasShown) {
  const System system = GpuBox();
  const PlacementResult free = Place(system, Demand(100), kBoth, 2, {});
  for (const search::Decision& decision : free.explanation.decisions) {
    for (const search::Loser& loser : decision.losers) {
      search::LoweringOptions options;
      options.forced[decision.id] = loser.label;
      const PlacementResult forced = Place(system, Demand(100), kBoth, 2, options);
      ASSERT_TRUE(forced.placement) << decision.id;
      const search::Decision* again = forced.explanation.Find(decision.id);
      EXPECT_EQ(again->chosen, loser.label);
      EXPECT_TRUE(again->forced);
      EXPECT_EQ(again->cost[0].value, loser.cost[0].value) << decision.id;
    }
  }
  search::LoweringOptions options;
  options.forced["l1/node.load"] = "gpu_0";
  const PlacementResult refused = Place(system, Demand(100), kBoth, 2, options);
  EXPECT_FALSE(refused.placement);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(std::get<search::NoCandidates>(*refused.failure).hint, "the choices are cpu_0");
}

TEST(L1PlaceTest, FailuresSayWhatIsMissing) {
  const auto reason = [](const System& system, const StepDemand& demand) {
    const PlacementResult result = Place(system, demand, kBoth, 2, {});
    EXPECT_FALSE(result.placement);
    return result.failure ? std::get<search::NoCandidates>(*result.failure).reason : "";
  };
  const std::string cpu = "node cpu_0 { kind: compute, isa: x86_64 }\n";
  const std::string ram = "node ram_0 { kind: memory, capacity: 1GB }\n";
  const std::string ssd = "node ssd_0 { kind: storage }\n";
  const std::string bus = "ram_0 <-> cpu_0 : bandwidth 1GB/s\n";
  EXPECT_EQ(reason(SystemOf(ram + cpu + "edges { " + bus + "}\n"), Demand(1)),
            "the system has no storage node for the data");
  EXPECT_EQ(reason(SystemOf(ssd + ram + cpu), Demand(1)),
            "no compute node of the system can be used");
  StepDemand large = Demand(1);
  large.state_bytes = 2e9;
  const System whole =
      SystemOf(ssd + ram + cpu + "edges {\nssd_0 -> ram_0 : bandwidth 1GB/s\n" + bus + "}\n");
  EXPECT_EQ(reason(whole, large),
            "parameters and optimiser state need 2GB, more than any memory of the system has");
  EXPECT_EQ(reason(SystemOf(ssd + ram + cpu + "edges { " + bus + "}\n"), Demand(1)),
            "no path of edges carries the batch and the state to where they are needed, or the "
            "staging buffers do not fit");
}

// The model of place.h once more, by enumeration: every node for every operation, every depth.
double BruteForce(const System& system, const StepDemand& demand, int64_t max_depth) {
  const size_t count = system.nodes.size();
  const auto holds = [&](uint32_t n) { return HoldsBuffers(system.nodes[n]); };
  // Widest path that passes through no other place that holds bytes, by relaxation.
  const auto widest = [&](uint32_t from, uint32_t to) {
    std::vector<double> width(count, 0);
    width[from] = std::numeric_limits<double>::infinity();
    for (size_t round = 0; round < count; ++round) {
      for (const Edge& edge : system.edges) {
        const auto relax = [&](uint32_t a, uint32_t b) {
          const bool passes =
              a == from || !(holds(a) || system.nodes[a].kind == NodeKind::kStorage);
          if (passes) width[b] = std::max(width[b], std::min(width[a], edge.bandwidth));
        };
        relax(edge.from, edge.to);
        if (edge.both_ways) relax(edge.to, edge.from);
      }
    }
    return width[to];
  };
  const auto local_rate = [&](uint32_t c) {
    if (system.nodes[c].vram > 0) return 900e9;
    double rate = 0;
    for (const Edge& edge : system.edges) {
      const uint32_t memory = LocalMemories(system, c).front();
      if ((edge.from == c && edge.to == memory) || (edge.to == c && edge.from == memory)) {
        rate = std::max(rate, edge.bandwidth);
      }
    }
    return rate;
  };
  const auto move = [&](double bytes, uint32_t from, uint32_t to) {
    if (from == to) return 0.0;
    const double rate = widest(from, to);
    return rate == 0 ? std::numeric_limits<double>::infinity() : bytes / rate;
  };
  std::vector<uint32_t> computing;
  uint32_t storage = 0;
  for (uint32_t n = 0; n < count; ++n) {
    if (system.nodes[n].kind == NodeKind::kStorage) storage = n;
    if (system.nodes[n].kind == NodeKind::kCompute && !LocalMemories(system, n).empty()) {
      computing.push_back(n);
    }
  }
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t l : computing) {
    if (system.nodes[l].vram > 0) continue;
    for (uint32_t m : computing) {
      for (uint32_t u : computing) {
        const uint32_t lm = LocalMemories(system, l).front();
        const uint32_t mm = LocalMemories(system, m).front();
        const uint32_t um = LocalMemories(system, u).front();
        const double load = move(demand.batch_bytes, storage, lm) +
                            2 * demand.batch_bytes / local_rate(l) +
                            move(demand.batch_bytes, lm, mm);
        const double model =
            std::max(demand.model_flops / AssumedFlops(system.nodes[m]),
                     (demand.batch_bytes + 2 * demand.parameter_bytes + demand.gradient_bytes) /
                         local_rate(m));
        const double update =
            std::max(demand.update_flops / AssumedFlops(system.nodes[u]),
                     (demand.gradient_bytes + 2 * demand.state_bytes) / local_rate(u));
        const double compute = model + update + move(demand.parameter_bytes, um, mm) +
                               move(demand.gradient_bytes, mm, um);
        for (int64_t d = 1; d <= max_depth; ++d) {
          best = std::min(best, d == 1 ? load + compute : std::max(load, compute));
        }
      }
    }
  }
  return best;
}

TEST(L1PlaceTest, AgreesWithBruteForceOnRandomSystems) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 50; ++round) {
    std::string nodes = "node ssd_0 { kind: storage }\n";
    std::string edges;
    const int memories = 1 + below(2);
    for (int m = 0; m < memories; ++m) {
      const std::string ram = "ram_" + std::to_string(m);
      nodes += "node " + ram + " { kind: memory, capacity: 8GB }\n";
      if (m == 0 || below(2) == 0) {
        edges += "ssd_0 -> " + ram + " : bandwidth " + std::to_string(1 + below(4)) + "GB/s\n";
      }
      nodes += "node cpu_" + std::to_string(m) +
               " { kind: compute, isa: x86_64, cores: " + std::to_string(1 + below(16)) + " }\n";
      edges += ram + " <-> cpu_" + std::to_string(m) + " : bandwidth " +
               std::to_string(5 + below(50)) + "GB/s\n";
      if (m > 0) edges += "cpu_0 <-> cpu_1 : bandwidth " + std::to_string(1 + below(20)) + "GB/s\n";
    }
    for (int g = 0; g < below(3); ++g) {
      const std::string gpu = "gpu_" + std::to_string(g);
      nodes += "node " + gpu +
               " { kind: compute, isa: cuda, vram: 8GB, sm: " + std::to_string(1 + below(80)) +
               " }\n";
      edges += "cpu_" + std::to_string(below(memories)) + " <-> " + gpu + " : bandwidth " +
               std::to_string(1 + below(32)) + "GB/s\n";
    }
    const System system = SystemOf(nodes + "edges {\n" + edges + "}\n");
    StepDemand demand = Demand(0.01 * (1 + below(1000)));
    demand.batch_bytes = 1e4 * (1 + below(1000));
    demand.parameter_bytes = 1e4 * (1 + below(1000));
    demand.gradient_bytes = demand.parameter_bytes;
    demand.state_bytes = 3 * demand.parameter_bytes;
    const PlacementResult result = Place(system, demand, kBoth, 2, {});
    ASSERT_TRUE(result.placement) << nodes << edges;
    const double ours = result.explanation.decisions[0].cost[0].value;
    EXPECT_NEAR(ours, BruteForce(system, demand, 2), 1e-12 * ours) << nodes << edges;

    // The other modes are no better, and every one of them places the step.
    for (const search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy}) {
      search::LoweringOptions options;
      options.mode = mode;
      const PlacementResult other = Place(system, demand, kBoth, 2, options);
      ASSERT_TRUE(other.placement) << nodes << edges;
      EXPECT_GE(other.explanation.decisions[0].cost[0].value, ours * (1 - 1e-12));
    }
  }
}

TEST(L1PlaceTest, TheSameInputGivesTheSameBytes) {
  const System system = GpuBox();
  const std::string once =
      search::RenderExplanationJson(Place(system, Demand(1), kBoth, 2, {}).explanation);
  EXPECT_EQ(once,
            search::RenderExplanationJson(Place(system, Demand(1), kBoth, 2, {}).explanation));
}

TEST(L1DiscoverTest, TheHostIsAProperSystem) {
  const System host = DiscoverHost();
  EXPECT_EQ(PrintSystem(host), PrintSystem(DiscoverHost()));
  const auto program = ParseText(PrintSystem(host));
  ASSERT_TRUE(program);
  EXPECT_TRUE(IsSystemFragment(*program));
  EXPECT_EQ(PrintSystem(program->system), PrintSystem(host));
  EXPECT_GE(host.nodes[2].cores, 1);
}

}  // namespace
}  // namespace l3c::l1
