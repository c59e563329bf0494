#include "layers/l1/place_model.h"

#include <algorithm>
#include <limits>

#include "layers/support/units.h"

namespace l3c::l1 {
namespace {

constexpr double kCpuClock = 2.5e9;
constexpr double kGpuClock = 1.5e9;
constexpr double kGpuLanes = 128;
// Of a GPU's own memory, which a system description does not give.
constexpr double kGpuMemoryRate = 900e9;
constexpr double kNoPath = std::numeric_limits<double>::infinity();

std::string BytesText(double bytes) { return support::PrintBytes(static_cast<int64_t>(bytes)); }

}  // namespace

bool StepDemand::CanShare(int64_t parts) const {
  return why_beside_state.empty() && std::find(shares.begin(), shares.end(), parts) != shares.end();
}

bool StepDemand::CanBeStages(size_t stages) const {
  return why_beside_state.empty() && !micro_batches.empty() && stages <= layers.size();
}

double AssumedFlops(const SystemNode& node) {
  if (node.vram > 0 || node.sm > 0) {
    return static_cast<double>(std::max<int64_t>(node.sm, 1)) * kGpuLanes * 2 * kGpuClock;
  }
  const auto has = [&](std::string_view feature) {
    return std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  };
  const double lanes = has("avx512f") ? 16 : has("avx2") ? 8 : 4;
  const double multiply_add = has("avx512f") || has("fma") ? 2 : 1;
  constexpr double kPipes = 2;
  return static_cast<double>(std::max<int64_t>(node.cores, 1)) * lanes * multiply_add * kPipes *
         kCpuClock;
}

double WidestPath(const System& system, uint32_t from, uint32_t to) {
  std::vector<double> width(system.nodes.size(), 0);
  std::vector<bool> done(system.nodes.size());
  width[from] = kNoPath;
  for (;;) {
    std::optional<uint32_t> next;
    for (uint32_t n = 0; n < width.size(); ++n) {
      if (!done[n] && width[n] > 0 && (!next || width[n] > width[*next])) next = n;
    }
    if (!next) return 0;
    if (*next == to) return width[to];
    done[*next] = true;
    const SystemNode& node = system.nodes[*next];
    if (*next != from && (HoldsBuffers(node) || node.kind == NodeKind::kStorage)) continue;
    for (const Edge& edge : system.edges) {
      const auto relax = [&](uint32_t a, uint32_t b) {
        if (a == *next) width[b] = std::max(width[b], std::min(width[a], edge.bandwidth));
      };
      relax(edge.from, edge.to);
      if (edge.both_ways) relax(edge.to, edge.from);
    }
  }
}

double PlacementModel::LocalRate(uint32_t node, uint32_t memory) const {
  if (node == memory) return kGpuMemoryRate;
  double rate = 0;
  for (const Edge& edge : system_.edges) {
    const bool between =
        (edge.from == node && edge.to == memory) || (edge.from == memory && edge.to == node);
    if (between) rate = std::max(rate, edge.bandwidth);
  }
  return rate;
}

double PlacementModel::MemoryRate(uint32_t memory) const {
  double rate = 0;
  for (uint32_t n = 0; n < system_.nodes.size(); ++n) {
    if (system_.nodes[n].kind != NodeKind::kCompute) continue;
    const std::vector<uint32_t> local = LocalMemories(system_, n);
    if (std::find(local.begin(), local.end(), memory) == local.end()) continue;
    rate = std::max(rate, LocalRate(n, memory));
  }
  return rate;
}

double PlacementModel::PathRate(uint32_t from, uint32_t to) const {
  const auto [it, fresh] = rates_.try_emplace({from, to}, 0);
  if (fresh) it->second = WidestPath(system_, from, to);
  return it->second;
}

double PlacementModel::CopyTime(double bytes, uint32_t from, uint32_t to) const {
  if (from == to) return 0;
  const double rate = PathRate(from, to);
  return rate == 0 ? kNoPath : bytes / rate + kTransferLatency;
}

double PlacementModel::LoadTime(uint32_t node, uint32_t memory) const {
  return 2 * demand_.batch_bytes / LocalRate(node, memory);  // decoded and written
}

double PlacementModel::ModelTime(const Site& site) const {
  const double parts = static_cast<double>(site.parts());
  double slowest = 0;
  for (size_t i = 0; i < site.parts(); ++i) {
    const double bytes =
        demand_.batch_bytes / parts + 2 * demand_.parameter_bytes + demand_.gradient_bytes;
    slowest =
        std::max({slowest, demand_.model_flops / parts / AssumedFlops(system_.nodes[site.nodes[i]]),
                  bytes / LocalRate(site.nodes[i], site.memories[i])});
  }
  return slowest;
}

double PlacementModel::StageTime(const Site& site, size_t stage, size_t first, size_t end,
                                 int64_t micro_batches) const {
  const double m = static_cast<double>(micro_batches);
  const uint32_t memory = site.memories[stage];
  double flops = 0, parameters = 0, transfers = 0, moved = 0;
  const auto from = [&](double bytes, size_t neighbour) {
    moved += bytes;
    if (site.memories[neighbour] == memory) return;
    transfers += bytes / PathRate(site.memories[neighbour], memory) + m * kTransferLatency;
  };
  if (stage > 0) from(demand_.layers[first - 1].forward_bytes, stage - 1);
  for (size_t layer = first; layer < end; ++layer) {
    flops += demand_.layers[layer].flops;
    parameters += demand_.layers[layer].parameter_bytes;
  }
  if (stage + 1 < site.parts()) from(demand_.layers[end - 1].backward_bytes, stage + 1);
  const double work = std::max(flops / AssumedFlops(system_.nodes[site.nodes[stage]]),
                               (moved + 3 * m * parameters) / LocalRate(site.nodes[stage], memory));
  return work + transfers + 2 * m * kHandOver;
}

double PlacementModel::StagesTime(const Site& site, const std::vector<size_t>& cut,
                                  int64_t micro_batches) const {
  const double m = static_cast<double>(micro_batches);
  const double p = static_cast<double>(site.parts());
  double slowest = 0, sums = 0;
  size_t first = 0;
  for (size_t s = 0; s < site.parts(); first += cut[s++]) {
    slowest = std::max(slowest, StageTime(site, s, first, first + cut[s], micro_batches));
    double parameters = 0;
    for (size_t l = first; l < first + cut[s]; ++l) parameters += demand_.layers[l].parameter_bytes;
    sums = std::max(sums, (m + 1) * parameters / LocalRate(site.nodes[s], site.memories[s]));
  }
  return (m + p - 1) / m * slowest + sums;
}

double PlacementModel::UpdateTime(uint32_t node, uint32_t memory) const {
  const double bytes = demand_.gradient_bytes + 2 * demand_.state_bytes;
  return std::max(demand_.update_flops / AssumedFlops(system_.nodes[node]),
                  bytes / LocalRate(node, memory));
}

double PlacementModel::ReadTime(uint32_t storage, uint32_t staging) const {
  const double rate = PathRate(storage, staging);
  return rate == 0 ? kNoPath : demand_.batch_bytes / rate;
}

double PlacementModel::SlowestCopy(double bytes, uint32_t memory, const Site& site,
                                   bool back) const {
  double slowest = 0;
  for (uint32_t other : site.memories) {
    slowest =
        std::max(slowest, back ? CopyTime(bytes, other, memory) : CopyTime(bytes, memory, other));
  }
  return slowest;
}

double PlacementModel::BatchTime(uint32_t staging, const Site& site) const {
  double time = 0;
  // It is cut where it is staged: read and written once more.
  if (site.parts() > 1) time += 2 * demand_.batch_bytes / MemoryRate(staging) + kHandOver;
  if (site.in_stages) return time + SlowestCopy(demand_.batch_bytes, staging, site, false);
  const double share = demand_.batch_bytes / static_cast<double>(site.parts());
  for (uint32_t memory : site.memories) time += CopyTime(share, staging, memory);
  return time;
}

double PlacementModel::ParameterTime(uint32_t home, const Site& site) const {
  if (site.in_stages) return SlowestCopy(demand_.parameter_bytes, home, site, false);
  double time = 0;
  for (uint32_t memory : site.memories) time += CopyTime(demand_.parameter_bytes, home, memory);
  return time;
}

double PlacementModel::GradientTime(const Site& site, uint32_t home) const {
  if (site.in_stages) return SlowestCopy(demand_.gradient_bytes, home, site, true);
  double time = 0;
  for (uint32_t memory : site.memories) time += CopyTime(demand_.gradient_bytes, memory, home);
  if (site.parts() > 1) {
    const double parts = static_cast<double>(site.parts());
    time += (parts + 1) * demand_.gradient_bytes / MemoryRate(home) + parts * kHandOver;
  }
  return time;
}

double PlacementModel::ReadInPlaceTime(uint32_t home, const Site& site) const {
  double slowest = 0;
  for (size_t i = 0; i < site.parts(); ++i) {
    const double there = 2 * demand_.parameter_bytes / LocalRate(site.nodes[i], home);
    const double near = 2 * demand_.parameter_bytes / LocalRate(site.nodes[i], site.memories[i]);
    slowest = std::max(slowest, there - near);
  }
  return slowest;
}

double PlacementModel::RingTime(const Site& site) const {
  const size_t n = site.parts();
  const auto found = demand_.largest_bucket.find(static_cast<int64_t>(n));
  const double bucket = found != demand_.largest_bucket.end()
                            ? found->second
                            : demand_.gradient_bytes / static_cast<double>(n);
  double hand_on = 0, add = 0;
  for (size_t i = 0; i < n; ++i) {
    hand_on = std::max(hand_on, CopyTime(bucket, site.memories[i], site.memories[(i + 1) % n]));
    add = std::max(add, 3 * bucket / LocalRate(site.nodes[i], site.memories[i]));
  }
  return static_cast<double>(n - 1) * (2 * hand_on + add + kHandOver);
}

double PlacementModel::ReplicatedUpdateTime(const Site& site) const {
  double slowest = 0;
  for (size_t i = 0; i < site.parts(); ++i) {
    slowest = std::max(slowest, UpdateTime(site.nodes[i], site.memories[i]));
  }
  return slowest;
}

double PlacementModel::Capacity(uint32_t memory) const {
  return static_cast<double>(BufferCapacity(system_.nodes[memory]));
}

bool PlacementModel::StateFits(uint32_t memory) const {
  return demand_.state_bytes <= Capacity(memory);
}

bool PlacementModel::Reaches(const Site& site, uint32_t memory) const {
  return std::all_of(site.nodes.begin(), site.nodes.end(), [&](uint32_t node) {
    const std::vector<uint32_t> local = LocalMemories(system_, node);
    return std::find(local.begin(), local.end(), memory) != local.end();
  });
}

PlacementModel::Need PlacementModel::NeedOf(int64_t depth, uint32_t staging, uint32_t home,
                                            const Site& site, bool in_place) const {
  Need need;
  const double parts = static_cast<double>(site.parts());
  const double batches = static_cast<double>(depth) * demand_.batch_bytes;
  need.bytes[staging] += batches;
  need.bytes[home] += demand_.state_bytes;
  std::map<uint32_t, double> intermediate;
  for (size_t i = 0; i < site.parts(); ++i) {
    const uint32_t memory = site.memories[i];
    if (memory != staging || site.parts() > 1) {
      need.bytes[memory] += site.in_stages ? batches : batches / parts;
    }
    const bool carried = memory != home && !in_place;
    if (site.in_stages) {
      need.bytes[memory] += site.most[i];
    } else if (carried) {
      need.bytes[memory] += demand_.parameter_bytes + demand_.gradient_bytes;
    }
    // Gradients to be added up lie beside one another; a single one goes into the update.
    const bool comes = site.in_stages ? i == 0 : carried || site.parts() > 1;
    if (comes) need.bytes[home] += demand_.gradient_bytes;
    intermediate[memory] += demand_.activation_bytes / parts;
  }
  if (!StateFits(home)) need.too_small = StateTooLarge(home);
  CheckRoom(need, intermediate);
  return need;
}

std::string PlacementModel::StateTooLarge(uint32_t memory) const {
  return "state larger than " + system_.nodes[memory].name +
         "'s memory: " + BytesText(demand_.state_bytes) + " of " + BytesText(Capacity(memory));
}

PlacementModel::Need PlacementModel::NeedReplicated(int64_t depth, uint32_t staging,
                                                    const Site& site) const {
  Need need;
  const double parts = static_cast<double>(site.parts());
  const double batches = static_cast<double>(depth) * demand_.batch_bytes;
  need.bytes[staging] += batches;
  std::map<uint32_t, double> intermediate;
  for (uint32_t memory : site.memories) {
    // The sums come in beside the node's own gradients, which are intermediate values.
    need.bytes[memory] += batches / parts + demand_.state_bytes + demand_.gradient_bytes;
    intermediate[memory] += demand_.activation_bytes / parts;
    if (!StateFits(memory) && need.too_small.empty()) need.too_small = StateTooLarge(memory);
  }
  CheckRoom(need, intermediate);
  return need;
}

void PlacementModel::CheckRoom(Need& need, const std::map<uint32_t, double>& intermediate) const {
  for (const auto& [memory, bytes] : need.bytes) {
    const auto live = intermediate.find(memory);
    const double capacity = Capacity(memory);
    need.tight = need.tight || bytes + (live == intermediate.end() ? 0 : live->second) > capacity;
    if (bytes <= capacity || !need.too_small.empty()) continue;
    const std::string& name = system_.nodes[memory].name;
    need.too_small =
        "a step needs " + BytesText(bytes) + " in " + name + ", which has " + BytesText(capacity);
  }
}

PlacementModel::Need PlacementModel::NeedStreamed(int64_t depth, uint32_t staging, uint32_t rests,
                                                  const Site& site) const {
  Need need;
  const uint32_t near = site.memories[0];
  const double batches = static_cast<double>(depth) * demand_.batch_bytes;
  need.bytes[staging] += batches;
  if (near != staging) need.bytes[near] += batches;
  need.bytes[rests] += demand_.state_bytes;
  const double state = demand_.state_bytes / std::max(1.0, demand_.parameter_bytes);
  need.bytes[near] += 2 * demand_.largest_bytes * state + demand_.largest_bytes;
  CheckRoom(need, {{near, demand_.activation_bytes}});
  return need;
}

bool PlacementModel::CanStream(uint32_t rests, uint32_t memory) const {
  return rests != memory && PathRate(rests, memory) > 0 && PathRate(memory, rests) > 0;
}

double PlacementModel::StreamedModelTime(uint32_t rests, const Site& site) const {
  const uint32_t near = site.memories[0];
  const double copies = 2 * static_cast<double>(demand_.parameters) * kTransferLatency;
  return std::max(ModelTime(site), 2 * demand_.parameter_bytes / PathRate(rests, near) + copies);
}

double PlacementModel::StreamedUpdateTime(uint32_t rests, const Site& site) const {
  const uint32_t near = site.memories[0];
  const double copies = 2 * static_cast<double>(demand_.parameters) * kTransferLatency;
  const double transfers = demand_.state_bytes / PathRate(rests, near) +
                           demand_.state_bytes / PathRate(near, rests) + copies;
  return std::max(UpdateTime(site.nodes[0], near), transfers);
}

}  // namespace l3c::l1
