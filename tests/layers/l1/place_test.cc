// Placement: a real choice between nodes, its explanation, its failures; and agreement with a
// brute-force enumeration on small random systems.
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

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

// The model of place_model.h once more, by enumeration: every node and memory for every operation,
// every set of nodes that shares a batch, loading and carrying in one stage or two, every depth.
class BruteForce {
 public:
  BruteForce(const System& system, const StepDemand& demand) : system_(system), demand_(demand) {
    for (uint32_t n = 0; n < system.nodes.size(); ++n) {
      if (system.nodes[n].kind == NodeKind::kStorage) storage_ = n;
      if (system.nodes[n].kind != NodeKind::kCompute) continue;
      if (!LocalMemories(system, n).empty()) computing_.push_back(n);
    }
  }

  // Infinity where no placement is feasible.
  double Best(int64_t max_depth) const {
    double best = kNever;
    ForEach(max_depth,
            [&](double time, const std::vector<uint32_t>&) { best = std::min(best, time); });
    return best;
  }

  // Calls `visit(time, nodes of the model)` for each placement that fits.
  template <typename Visit>
  void ForEach(int64_t max_depth, const Visit& visit) const {
    for (uint32_t loader : computing_) {
      if (system_.nodes[loader].vram > 0) continue;
      for (uint32_t staging : LocalMemories(system_, loader)) {
        const double load = Move(demand_.batch_bytes, storage_, staging, 0) +
                            2 * demand_.batch_bytes / Rate(loader, staging);
        for (uint32_t updater : computing_) {
          for (uint32_t home : LocalMemories(system_, updater)) {
            const double update =
                std::max(demand_.update_flops / AssumedFlops(system_.nodes[updater]),
                         (demand_.gradient_bytes + 2 * demand_.state_bytes) / Rate(updater, home));
            JudgeStreamed(load, updater, staging, home, max_depth, visit);
            for (const auto& [nodes, memories] : Sites()) {
              Judge(load, update, staging, home, nodes, memories, max_depth, visit);
              if (nodes.size() > 1) {
                if (home == memories[0] && updater == nodes[0]) {
                  JudgeRing(load, staging, nodes, memories, max_depth, visit);
                }
                const Nodes order = AlongTheData(nodes);
                Nodes there;
                for (uint32_t n : order) there.push_back(LocalMemories(system_, n).front());
                JudgeStages(load, update, staging, home, order, there, max_depth, visit);
              }
            }
          }
        }
      }
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  using Nodes = std::vector<uint32_t>;

  std::vector<std::pair<Nodes, Nodes>> Sites() const {
    std::vector<std::pair<Nodes, Nodes>> sites;
    for (uint32_t set = 1; set < 1u << computing_.size(); ++set) {
      Nodes nodes, memories;
      for (size_t i = 0; i < computing_.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        nodes.push_back(computing_[i]);
        memories.push_back(LocalMemories(system_, computing_[i]).front());
      }
      if (nodes.size() == 1) {
        for (uint32_t memory : LocalMemories(system_, nodes[0])) sites.push_back({nodes, {memory}});
      } else {
        sites.push_back({nodes, memories});
      }
    }
    return sites;
  }

  template <typename Visit>
  void Judge(double load, double update, uint32_t staging, uint32_t home, const Nodes& nodes,
             const Nodes& memories, int64_t max_depth, const Visit& visit) const {
    if (nodes.size() > 1 && !demand_.CanShare(static_cast<int64_t>(nodes.size()))) return;
    const double k = static_cast<double>(nodes.size());
    const double batch = demand_.batch_bytes, p = demand_.parameter_bytes;
    const double g = demand_.gradient_bytes;
    double carry = 0, run = 0, travel = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      carry += Move(batch / k, staging, memories[i], kLatency);
      travel += Move(p, home, memories[i], kLatency) + Move(g, memories[i], home, kLatency);
      run = std::max({run, demand_.model_flops / k / AssumedFlops(system_.nodes[nodes[i]]),
                      (batch / k + 2 * p + g) / Rate(nodes[i], memories[i])});
    }
    if (nodes.size() > 1) {
      carry += 2 * batch / MemoryRate(staging) + kHop;
      travel += (k + 1) * g / MemoryRate(home) + k * kHop;
    }
    const bool carried = nodes.size() > 1 || memories[0] != staging;
    for (int64_t depth = 1; depth <= max_depth; ++depth) {
      bool fits = true, tight = false;
      for (uint32_t m = 0; m < system_.nodes.size(); ++m) {
        double bytes = m == staging ? static_cast<double>(depth) * batch : 0;
        if (m == home) bytes += demand_.state_bytes;
        double more = 0;
        for (uint32_t memory : memories) {
          if (memory == m && carried) bytes += static_cast<double>(depth) * batch / k;
          if (memory == m && memory != home) bytes += p + g;
          if (m == home && (memory != home || nodes.size() > 1)) bytes += g;
          if (memory == m) more += demand_.activation_bytes / k;
        }
        const double capacity = static_cast<double>(BufferCapacity(system_.nodes[m]));
        if (bytes == 0) continue;
        fits = fits && bytes <= capacity;
        tight = tight || bytes + more > capacity;
      }
      if (!fits) continue;
      const double compute = run * (tight ? 4.0 / 3 : 1) + travel + update;
      for (const bool own : {false, true}) {
        if (carried ? nodes.size() > 1 && !own : own) continue;
        const double one = load + (own ? 0 : carry);
        const double two = own ? carry + kHop : 0;
        const double sum = one + two + compute;
        const double time =
            depth == 1 ? sum : std::max({one, two, compute, sum / static_cast<double>(depth)});
        if (time < kNever) visit(time, nodes);
      }
    }
  }

  // Each node has the state; a bucket of the gradients goes from each to the next, all at once.
  template <typename Visit>
  void JudgeRing(double load, uint32_t staging, const Nodes& nodes, const Nodes& memories,
                 int64_t max_depth, const Visit& visit) const {
    if (!demand_.CanShare(static_cast<int64_t>(nodes.size()))) return;
    const double k = static_cast<double>(nodes.size());
    const double batch = demand_.batch_bytes, g = demand_.gradient_bytes;
    double carry = 2 * batch / MemoryRate(staging) + kHop, run = 0, hop = 0, add = 0, update = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const double rate = Rate(nodes[i], memories[i]);
      const double flops = AssumedFlops(system_.nodes[nodes[i]]);
      carry += Move(batch / k, staging, memories[i], kLatency);
      run = std::max({run, demand_.model_flops / k / flops,
                      (batch / k + 2 * demand_.parameter_bytes + g) / rate});
      hop = std::max(hop, Move(g / k, memories[i], memories[(i + 1) % nodes.size()], kLatency));
      add = std::max(add, 3 * g / k / rate);
      update = std::max(
          {update, demand_.update_flops / flops, (g + 2 * demand_.state_bytes) / rate});
    }
    const double sums = (k - 1) * (2 * hop + add + kHop);
    for (int64_t depth = 1; depth <= max_depth; ++depth) {
      std::map<uint32_t, double> bytes, more;
      bytes[staging] += static_cast<double>(depth) * batch;
      for (uint32_t memory : memories) {
        bytes[memory] += static_cast<double>(depth) * batch / k + demand_.state_bytes + g;
        more[memory] += demand_.activation_bytes / k;
      }
      bool fits = true, tight = false;
      for (const auto& [memory, sum] : bytes) {
        const auto capacity = static_cast<double>(BufferCapacity(system_.nodes[memory]));
        fits = fits && sum <= capacity;
        tight = tight || sum + more[memory] > capacity;
      }
      if (!fits) continue;
      const double compute = run * (tight ? 4.0 / 3 : 1) + sums + update;
      const double two = carry + kHop, sum = load + two + compute;
      const double time =
          depth == 1 ? sum : std::max({load, two, compute, sum / static_cast<double>(depth)});
      if (time < kNever) visit(time, nodes);
    }
  }

  // First the node with the widest path from the storage, then the one with the widest from there.
  Nodes AlongTheData(Nodes nodes) const {
    Nodes order;
    while (!nodes.empty()) {
      const uint32_t from = order.empty() ? storage_ : LocalMemories(system_, order.back()).front();
      const auto time = [&](uint32_t n) {
        return from == LocalMemories(system_, n).front()
                   ? 0
                   : Move(1, from, LocalMemories(system_, n).front(), 0);
      };
      const auto next = std::min_element(nodes.begin(), nodes.end(),
                                         [&](uint32_t a, uint32_t b) { return time(a) < time(b); });
      order.push_back(*next);
      nodes.erase(next);
    }
    return order;
  }

  // On one node, with the state at rest in `rests` and brought in by turns: where the node's memory
  // has no room for a step with all of it.
  template <typename Visit>
  void JudgeStreamed(double load, uint32_t node, uint32_t staging, uint32_t near, int64_t max_depth,
                     const Visit& visit) const {
    if (demand_.parameters == 0 || near != LocalMemories(system_, node).front()) return;
    const auto capacity = [&](uint32_t memory) {
      return static_cast<double>(BufferCapacity(system_.nodes[memory]));
    };
    const double batch = demand_.batch_bytes, p = demand_.parameter_bytes;
    const double state = demand_.state_bytes;
    for (uint32_t n : computing_) {
      for (uint32_t other : LocalMemories(system_, n)) {
        if (system_.nodes[other].kind != NodeKind::kMemory) continue;
        const double own = state + batch;
        const bool apart = other != near;
        if (own <= capacity(near) && (!apart || batch <= capacity(other))) return;  // room
      }
    }
    for (uint32_t rests = 0; rests < system_.nodes.size(); ++rests) {
      if (system_.nodes[rests].kind != NodeKind::kMemory || rests == near) continue;
      const double in = Move(1, rests, near, 0), out = Move(1, near, rests, 0);
      if (in == kNever || out == kNever || state > capacity(rests)) continue;
      const double copies = 2 * static_cast<double>(demand_.parameters) * kLatency;
      const double rate = Rate(node, near);
      const double run =
          std::max({demand_.model_flops / AssumedFlops(system_.nodes[node]),
                    (batch + 2 * p + demand_.gradient_bytes) / rate, 2 * p * in + copies});
      const double update = std::max({demand_.update_flops / AssumedFlops(system_.nodes[node]),
                                      (demand_.gradient_bytes + 2 * state) / rate,
                                      state * in + state * out + copies});
      for (int64_t depth = 1; depth <= max_depth; ++depth) {
        std::map<uint32_t, double> bytes;
        bytes[staging] += static_cast<double>(depth) * batch;
        if (near != staging) bytes[near] += static_cast<double>(depth) * batch;
        bytes[rests] += state;
        bytes[near] += demand_.largest_bytes * (2 * state / p + 1);
        bool fits = true, tight = false;
        for (const auto& [memory, sum] : bytes) {
          fits = fits && sum <= capacity(memory);
          tight = tight || sum + (memory == near ? demand_.activation_bytes : 0) > capacity(memory);
        }
        if (!fits) continue;
        const double carry = Move(batch, staging, near, kLatency);
        const double compute = run * (tight ? 4.0 / 3 : 1) + update;
        for (const bool own : {false, true}) {
          if (own && near == staging) continue;
          const double one = load + (own ? 0 : carry), two = own ? carry + kHop : 0;
          const double sum = one + two + compute;
          const double time =
              depth == 1 ? sum : std::max({one, two, compute, sum / static_cast<double>(depth)});
          if (time < kNever) visit(time, {node});
        }
      }
    }
  }

  // In stages: each node has some layers, every cut that fits and every number of parts.
  template <typename Visit>
  void JudgeStages(double load, double update, uint32_t staging, uint32_t home, const Nodes& nodes,
                   const Nodes& memories, int64_t max_depth, const Visit& visit) const {
    const size_t p = nodes.size(), layers = demand_.layers.size();
    if (layers < p) return;
    const double batch = demand_.batch_bytes;
    std::vector<std::vector<size_t>> cuts;  // the last layer of each stage but one behind it
    std::vector<double> most(p, 0);
    for (uint32_t set = 0; set < 1u << (layers - 1); ++set) {
      if (static_cast<size_t>(__builtin_popcount(set)) + 1 != p) continue;
      std::vector<size_t> ends;
      for (size_t l = 0; l + 1 < layers; ++l) {
        if (set >> l & 1) ends.push_back(l + 1);
      }
      ends.push_back(layers);
      bool fits = true;
      std::vector<double> own(p, 0);
      for (size_t s = 0; s < p; ++s) {
        for (size_t l = s == 0 ? 0 : ends[s - 1]; l < ends[s]; ++l) {
          own[s] += 2 * demand_.layers[l].parameter_bytes;
        }
        fits = fits && own[s] + static_cast<double>(max_depth) * batch <=
                           static_cast<double>(BufferCapacity(system_.nodes[memories[s]]));
      }
      if (!fits) continue;
      for (size_t s = 0; s < p; ++s) most[s] = std::max(most[s], own[s]);
      cuts.push_back(ends);
    }
    double carry = 0, there = 0, back = 0;
    for (uint32_t memory : memories) {
      carry = std::max(carry, Move(batch, staging, memory, kLatency));
      there = std::max(there, Move(demand_.parameter_bytes, home, memory, kLatency));
      back = std::max(back, Move(demand_.gradient_bytes, memory, home, kLatency));
    }
    carry += 2 * batch / MemoryRate(staging) + 2 * kHop;
    for (int64_t depth = 1; depth <= max_depth; ++depth) {
      std::map<uint32_t, double> bytes, more;
      bytes[staging] += static_cast<double>(depth) * batch;
      bytes[home] += demand_.state_bytes + demand_.gradient_bytes;
      for (size_t s = 0; s < p; ++s) {
        bytes[memories[s]] += static_cast<double>(depth) * batch + most[s];
        more[memories[s]] += demand_.activation_bytes / static_cast<double>(p);
      }
      bool fits = true;
      for (const auto& [memory, sum] : bytes) {
        const auto capacity = static_cast<double>(BufferCapacity(system_.nodes[memory]));
        fits = fits && sum + more[memory] <= capacity;
      }
      if (!fits) continue;
      for (const std::vector<size_t>& ends : cuts) {
        for (int64_t m : demand_.micro_batches) {
          const double compute =
              Pipelined(nodes, memories, ends, static_cast<double>(m)) + there + back + update;
          const double sum = load + carry + compute;
          const double time =
              depth == 1 ? sum : std::max({load, carry, compute, sum / static_cast<double>(depth)});
          if (time < kNever) visit(time, nodes);
        }
      }
    }
  }

  double Pipelined(const Nodes& nodes, const Nodes& memories, const std::vector<size_t>& ends,
                   double m) const {
    const double p = static_cast<double>(nodes.size());
    double slowest = 0, sums = 0;
    for (size_t s = 0; s < nodes.size(); ++s) {
      double flops = 0, parameters = 0, moved = 0, transfers = 0;
      const size_t begin = s == 0 ? 0 : ends[s - 1];
      for (size_t l = begin; l < ends[s]; ++l) {
        flops += demand_.layers[l].flops;
        parameters += demand_.layers[l].parameter_bytes;
      }
      if (s > 0) {
        const double bytes = demand_.layers[begin - 1].forward_bytes;
        moved += bytes;
        if (memories[s - 1] != memories[s]) {
          transfers += Move(bytes, memories[s - 1], memories[s], m * kLatency);
        }
      }
      if (s + 1 < nodes.size()) {
        const double bytes = demand_.layers[ends[s] - 1].backward_bytes;
        moved += bytes;
        if (memories[s + 1] != memories[s]) {
          transfers += Move(bytes, memories[s + 1], memories[s], m * kLatency);
        }
      }
      const double rate = Rate(nodes[s], memories[s]);
      slowest = std::max(slowest, std::max(flops / AssumedFlops(system_.nodes[nodes[s]]),
                                           (moved + 3 * m * parameters) / rate) +
                                      transfers + 2 * m * kHop);
      sums = std::max(sums, (m + 1) * parameters / rate);
    }
    return (m + p - 1) / m * slowest + sums;
  }

  bool Holds(uint32_t n) const { return HoldsBuffers(system_.nodes[n]); }

  // Over the widest path that passes through no other place that holds bytes, by relaxation.
  double Move(double bytes, uint32_t from, uint32_t to, double latency) const {
    if (from == to) return 0;
    std::vector<double> width(system_.nodes.size(), 0);
    width[from] = kNever;
    for (size_t round = 0; round < width.size(); ++round) {
      for (const Edge& edge : system_.edges) {
        const auto relax = [&](uint32_t a, uint32_t b) {
          const bool passes =
              a == from || !(Holds(a) || system_.nodes[a].kind == NodeKind::kStorage);
          if (passes) width[b] = std::max(width[b], std::min(width[a], edge.bandwidth));
        };
        relax(edge.from, edge.to);
        if (edge.both_ways) relax(edge.to, edge.from);
      }
    }
    return width[to] == 0 ? kNever : bytes / width[to] + latency;
  }

  double Rate(uint32_t node, uint32_t memory) const {
    if (node == memory) return 900e9;
    double rate = 0;
    for (const Edge& edge : system_.edges) {
      if ((edge.from == node && edge.to == memory) || (edge.to == node && edge.from == memory)) {
        rate = std::max(rate, edge.bandwidth);
      }
    }
    return rate;
  }

  double MemoryRate(uint32_t memory) const {
    double rate = 0;
    for (uint32_t n : computing_) {
      for (uint32_t m : LocalMemories(system_, n)) {
        if (m == memory) rate = std::max(rate, Rate(n, m));
      }
    }
    return rate;
  }

  static constexpr double kLatency = 10e-6, kHop = 5e-6;
  const System& system_;
  const StepDemand& demand_;
  uint32_t storage_ = 0;
  std::vector<uint32_t> computing_;
};

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
