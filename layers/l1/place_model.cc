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
constexpr double kNever = std::numeric_limits<double>::infinity();

std::string BytesText(double bytes) { return support::PrintBytes(static_cast<int64_t>(bytes)); }

}  // namespace

bool StepDemand::CanShare(int64_t parts) const {
  return why_beside_state.empty() && std::find(shares.begin(), shares.end(), parts) != shares.end();
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
  width[from] = kNever;
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

std::vector<Site> SitesOf(const System& system, const StepDemand& demand,
                          const std::vector<uint32_t>& nodes) {
  std::vector<Site> sites;
  for (uint32_t node : nodes) {
    for (uint32_t memory : LocalMemories(system, node)) {
      const auto& names = system.nodes;
      sites.push_back({names[node].name, names[memory].name, {node}, {memory}});
    }
  }
  std::vector<uint32_t> sharing = nodes;
  if (sharing.size() > kMaxSharing) {
    std::stable_sort(sharing.begin(), sharing.end(), [&](uint32_t a, uint32_t b) {
      return AssumedFlops(system.nodes[a]) > AssumedFlops(system.nodes[b]);
    });
    sharing.resize(kMaxSharing);
    std::sort(sharing.begin(), sharing.end());
  }
  for (size_t parts = 2; parts <= sharing.size(); ++parts) {
    if (!demand.CanShare(static_cast<int64_t>(parts))) continue;
    for (uint32_t set = 0; set < 1u << sharing.size(); ++set) {
      if (static_cast<size_t>(__builtin_popcount(set)) != parts) continue;
      Site site;
      for (size_t i = 0; i < sharing.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        site.nodes.push_back(sharing[i]);
        site.memories.push_back(LocalMemories(system, sharing[i]).front());
        site.label += (site.label.empty() ? "" : "+") + system.nodes[sharing[i]].name;
      }
      site.place = site.label;
      sites.push_back(std::move(site));
    }
  }
  return sites;
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
  return rate == 0 ? kNever : bytes / rate + kTransferLatency;
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

double PlacementModel::UpdateTime(uint32_t node, uint32_t memory) const {
  const double bytes = demand_.gradient_bytes + 2 * demand_.state_bytes;
  return std::max(demand_.update_flops / AssumedFlops(system_.nodes[node]),
                  bytes / LocalRate(node, memory));
}

double PlacementModel::ReadTime(uint32_t storage, uint32_t staging) const {
  const double rate = PathRate(storage, staging);
  return rate == 0 ? kNever : demand_.batch_bytes / rate;
}

double PlacementModel::BatchTime(uint32_t staging, const Site& site) const {
  const double share = demand_.batch_bytes / static_cast<double>(site.parts());
  double time = 0;
  // It is cut where it is staged: read and written once more.
  if (site.parts() > 1) time += 2 * demand_.batch_bytes / MemoryRate(staging) + kHandOver;
  for (uint32_t memory : site.memories) time += CopyTime(share, staging, memory);
  return time;
}

double PlacementModel::ParameterTime(uint32_t home, const Site& site) const {
  double time = 0;
  for (uint32_t memory : site.memories) time += CopyTime(demand_.parameter_bytes, home, memory);
  return time;
}

double PlacementModel::GradientTime(const Site& site, uint32_t home) const {
  double time = 0;
  for (uint32_t memory : site.memories) time += CopyTime(demand_.gradient_bytes, memory, home);
  if (site.parts() > 1) {
    const double parts = static_cast<double>(site.parts());
    time += (parts + 1) * demand_.gradient_bytes / MemoryRate(home) + parts * kHandOver;
  }
  return time;
}

bool PlacementModel::StateFits(uint32_t memory) const {
  return demand_.state_bytes <= static_cast<double>(BufferCapacity(system_.nodes[memory]));
}

PlacementModel::Need PlacementModel::NeedOf(int64_t depth, uint32_t staging, uint32_t home,
                                            const Site& site) const {
  Need need;
  const double parts = static_cast<double>(site.parts());
  const double batches = static_cast<double>(depth) * demand_.batch_bytes;
  need.bytes[staging] += batches;
  need.bytes[home] += demand_.state_bytes;
  std::map<uint32_t, double> intermediate;
  for (uint32_t memory : site.memories) {
    if (memory != staging || site.parts() > 1) need.bytes[memory] += batches / parts;
    if (memory != home) {
      need.bytes[memory] += demand_.parameter_bytes + demand_.gradient_bytes;
    }
    // Gradients to be added up lie beside one another; a single one goes into the update.
    if (memory != home || site.parts() > 1) need.bytes[home] += demand_.gradient_bytes;
    intermediate[memory] += demand_.activation_bytes / parts;
  }
  for (const auto& [memory, bytes] : need.bytes) {
    const double capacity = static_cast<double>(BufferCapacity(system_.nodes[memory]));
    need.tight = need.tight || bytes + intermediate[memory] > capacity;
    if (bytes <= capacity || !need.too_small.empty()) continue;
    const std::string& name = system_.nodes[memory].name;
    need.too_small = memory == home && demand_.state_bytes > capacity
                         ? "state larger than " + name +
                               "'s memory: " + BytesText(demand_.state_bytes) + " of " +
                               BytesText(capacity)
                         : "a step needs " + BytesText(bytes) + " in " + name + ", which has " +
                               BytesText(capacity);
  }
  return need;
}

}  // namespace l3c::l1
