// Placement: a real choice between nodes, its explanation, its failures.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/discover.h"
#include "layers/l1/place.h"
#include "tests/layers/l1/fixtures.h"
#include "tests/layers/l1/place_fixtures.h"

namespace l3c::l1 {
namespace {

TEST(L1PlaceTest, LargeModelsGoToTheFasterNode) {
  const System system = GpuBox();
  const PlacementResult result = Place(system, Demand(100), kBoth, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->model[0]].name, "gpu_0");
  EXPECT_EQ(system.nodes[result.placement->update].name, "gpu_0");
  EXPECT_EQ(system.nodes[result.placement->loader].name, "cpu_0");
  EXPECT_EQ(system.nodes[result.placement->staging].name, "ram_0");
  EXPECT_EQ(system.nodes[result.placement->resident[0]].name, "gpu_0");
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

TEST(L1PlaceTest, OfManyNodesTheFastestAreLookedAtAndAHost) {
  std::string text =
      "node ssd_0 { kind: storage }\n"
      "node ram_0 { kind: memory, capacity: 32GB }\n"
      "node cpu_0 { kind: compute, isa: x86_64, cores: 2 }\n";
  std::string edges = "ssd_0 -> ram_0 : bandwidth 2GB/s\nram_0 <-> cpu_0 : bandwidth 50GB/s\n";
  for (int i = 0; i < 30; ++i) {
    const std::string gpu = "gpu_" + std::to_string(i);
    text += "node " + gpu +
            " { kind: compute, isa: cuda, vram: 24GB, sm: " + std::to_string(10 + i) + " }\n";
    edges += "cpu_0 <-> " + gpu + " : bandwidth 32GB/s\n";
  }
  const System system = SystemOf(text + "edges {\n" + edges + "}\n");
  const PlacementResult result = Place(system, Demand(100), kBoth, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->model[0]].name, "gpu_29");
  EXPECT_EQ(system.nodes[result.placement->loader].name, "cpu_0");
  EXPECT_EQ(std::count_if(result.explanation.pruned.begin(), result.explanation.pruned.end(),
                          [](const auto& p) { return p.why.starts_with("not looked at"); }),
            14);
}

TEST(L1PlaceTest, WithoutABackendANodeIsPruned) {
  const System system = GpuBox();
  const PlacementResult result = Place(system, Demand(100), {"x86_64"}, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->model[0]].name, "cpu_0");
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
            "no path of edges leads from ssd_0 to ram_0, where batches are drawn into");
}

TEST(L1PlaceTest, OfEqualNodesTheFirstAreTaken) {
  std::string nodes =
      "node ssd_0 { kind: storage }\n"
      "node ram_0 { kind: memory, capacity: 32GB }\n"
      "node cpu_0 { kind: compute, isa: x86_64, cores: 1 }\n";
  std::string edges = "ssd_0 -> ram_0 : bandwidth 9GB/s\nram_0 <-> cpu_0 : bandwidth 90GB/s\n";
  for (const char* gpu : {"gpu_0", "gpu_1", "gpu_2", "gpu_3"}) {
    nodes += "node " + std::string(gpu) + " { kind: compute, isa: cuda, vram: 8GB, sm: 80 }\n";
    edges += "cpu_0 <-> " + std::string(gpu) + " : bandwidth 30GB/s\n";
  }
  StepDemand demand = Demand(100);
  demand.shares = {2};
  const System system = SystemOf(nodes + "edges {\n" + edges + "}\n");
  const PlacementResult result = Place(system, demand, kBoth, 3, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(result.explanation.Find("l1/node.forward_backward")->chosen, "gpu_0+gpu_1");
  EXPECT_EQ(result.explanation.Find("l1/gradients")->chosen, "ring");
  EXPECT_EQ(result.explanation.Find("l1/node.model_state")->chosen, "gpu_0+gpu_1");
  search::LoweringOptions gather;
  gather.forced["l1/gradients"] = "gather";
  const PlacementResult gathered = Place(system, demand, kBoth, 3, gather);
  ASSERT_TRUE(gathered.placement);
  EXPECT_FALSE(gathered.placement->replicated);
  EXPECT_EQ(gathered.explanation.Find("l1/node.model_state")->chosen, "gpu_0");
  // Gradients of two halves of a batch are added up in another order.
  search::LoweringOptions exact;
  exact.keep_order = true;
  const PlacementResult whole = Place(system, demand, kBoth, 3, exact);
  ASSERT_TRUE(whole.placement);
  EXPECT_EQ(whole.explanation.Find("l1/node.forward_backward")->chosen, "gpu_0");
  const search::Decision* partition = whole.explanation.Find("l1/partition");
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->chosen, "whole");
  ASSERT_FALSE(partition->pruned.empty());
  EXPECT_EQ(partition->pruned[0].what, "data(2)");
  EXPECT_NE(partition->pruned[0].why.find("--numerics exact"), std::string::npos);
  exact.forced["l1/partition"] = "data(2)";
  const PlacementResult none = Place(system, demand, kBoth, 3, exact);
  ASSERT_TRUE(none.failure);
  EXPECT_NE(std::get<search::NoCandidates>(*none.failure).reason.find("--numerics exact"),
            std::string::npos);
}

TEST(L1PlaceTest, AnInfeasibleChoiceHasAReason) {
  StepDemand demand = Demand(100);
  demand.state_bytes = 25e9;
  demand.parameter_bytes = demand.gradient_bytes = 8e9;
  const PlacementResult result = Place(GpuBox(), demand, kBoth, 2, {});
  ASSERT_TRUE(result.placement);
  const search::Decision* update = result.explanation.Find("l1/node.model_state");
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(update->chosen, "cpu_0");
  ASSERT_EQ(update->pruned.size(), 1u);
  EXPECT_EQ(update->pruned[0].what, "node gpu_0");
  EXPECT_EQ(update->pruned[0].why, "state larger than gpu_0's memory");

  demand.parameter_bytes = 18e9;
  demand.gradient_bytes = 6e9;
  const PlacementResult none = Place(GpuBox(), demand, kBoth, 2, {});
  ASSERT_TRUE(none.placement);
  const search::Decision* model = none.explanation.Find("l1/node.forward_backward");
  EXPECT_EQ(model->chosen, "cpu_0");
  ASSERT_EQ(model->pruned.size(), 1u);
  EXPECT_EQ(model->pruned[0].why, "a step needs 24000400kB in gpu_0, which has 24GB");
}

// Sixteen nodes on two hosts and sixty-four layers: all nodes work, and the cut balances layers of
// uneven work as well as any could.
TEST(L1PlaceTest, ManyNodesAndLayersHaveAPlan) {
  std::string nodes = "node ssd_0 { kind: storage }\n";
  std::string edges = "ssd_0 -> ram_0 : bandwidth 9GB/s\ncpu_0 <-> cpu_1 : bandwidth 25GB/s\n";
  for (int host = 0; host < 2; ++host) {
    const std::string h = std::to_string(host);
    nodes += "node ram_" + h + " { kind: memory, capacity: 512GB }\n";
    nodes += "node cpu_" + h + " { kind: compute, isa: x86_64, cores: 4 }\n";
    edges += "ram_" + h + " <-> cpu_" + h + " : bandwidth 200GB/s\n";
    for (int g = 0; g < 7; ++g) {
      const std::string gpu = "gpu_" + std::to_string(7 * host + g);
      nodes += "node " + gpu + " { kind: compute, isa: cuda, vram: 40GB, sm: 108 }\n";
      edges += "cpu_" + h + " <-> " + gpu + " : bandwidth 31GB/s\n";
      for (int o = 0; o < g; ++o) {
        edges += gpu + " <-> gpu_" + std::to_string(7 * host + o) + " : bandwidth 300GB/s\n";
      }
    }
  }
  const System system = SystemOf(nodes + "edges {\n" + edges + "}\n");
  StepDemand demand = Demand(500000);
  demand.batch_bytes = 1e6;
  demand.shares = {2, 4, 7, 14};
  demand.micro_batches = {2, 4, 8};
  double flops = 0, largest = 0;
  for (int l = 0; l < 64; ++l) {
    LayerWork& work = demand.layers.emplace_back();
    work.flops = 1e12 * (1 + (7 * l) % 13);
    work.parameter_bytes = 1e4;
    flops += work.flops;
    largest = std::max(largest, work.flops);
  }
  demand.model_flops = flops;
  const PlacementResult result = Place(system, demand, kBoth, 1, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(result.placement->model.size(), 14u);
  EXPECT_TRUE(result.placement->replicated);

  search::LoweringOptions stages;
  stages.forced["l1/partition"] = "stages(4)";
  const PlacementResult cut = Place(system, demand, kBoth, 1, stages);
  ASSERT_TRUE(cut.placement);
  ASSERT_EQ(cut.placement->stage_of.size(), 64u);
  std::vector<double> work(4, 0);
  for (size_t l = 0; l < 64; ++l) work[cut.placement->stage_of[l]] += demand.layers[l].flops;
  EXPECT_LE(*std::max_element(work.begin(), work.end()), flops / 4 + largest);
  // What was not looked at is said.
  std::string left_out;
  for (const search::Pruned& pruned : result.explanation.pruned) left_out += pruned.what + "\n";
  EXPECT_NE(left_out.find("sets of nodes that share the work"), std::string::npos) << left_out;
  EXPECT_NE(left_out.find("cuts of 64 layers into stages"), std::string::npos) << left_out;
}

// State in a second memory of a processor is read there, and nothing of it is carried.
TEST(L1PlaceTest, StateInAMemoryBesideANodeIsUsedInPlace) {
  const System system = SystemOf(
      "node ssd_0 { kind: storage }\n"
      "node ram_0 { kind: memory, capacity: 2MB }\n"
      "node cpu_0 { kind: compute, isa: x86_64, cores: 8, features: [avx2, fma] }\n"
      "node ram_1 { kind: memory, capacity: 32GB }\n"
      "edges {\n"
      "    ssd_0 -> ram_0 : bandwidth 2GB/s\n"
      "    ram_0 <-> cpu_0 : bandwidth 50GB/s\n"
      "    ram_1 <-> cpu_0 : bandwidth 10GB/s\n"
      "}\n");
  const PlacementResult result = Place(system, Demand(0.001), kBoth, 2, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(system.nodes[result.placement->home].name, "ram_1");
  EXPECT_EQ(system.nodes[result.placement->resident[0]].name, "ram_0");
  EXPECT_EQ(result.explanation.Find("l1/state")->chosen, "in ram_1");
  const double there = result.explanation.decisions[0].cost[0].value;
  // Where there is room beside the node, that is faster.
  System roomy = system;
  roomy.nodes[*FindNode(roomy, "ram_0")].capacity = 1'000'000'000;
  const PlacementResult near = Place(roomy, Demand(0.001), kBoth, 2, {});
  ASSERT_TRUE(near.placement);
  EXPECT_EQ(near.explanation.Find("l1/state")->chosen, "resident");
  EXPECT_LT(near.explanation.decisions[0].cost[0].value, there);
  search::LoweringOptions forced;
  forced.forced["l1/state"] = "in ram_1";
  const PlacementResult held = Place(roomy, Demand(0.001), kBoth, 2, forced);
  ASSERT_TRUE(held.placement);
  EXPECT_EQ(system.nodes[held.placement->home].name, "ram_1");
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
