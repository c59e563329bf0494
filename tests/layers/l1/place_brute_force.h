// The best placement by enumeration, of another make than the search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "layers/l1/place.h"

namespace l3c::l1 {

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
      update =
          std::max({update, demand_.update_flops / flops, (g + 2 * demand_.state_bytes) / rate});
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

}  // namespace l3c::l1
