#include "cost/calibrated.h"

#include <algorithm>
#include <cmath>

namespace l3c::cost {
namespace {

double Log2(int64_t n) { return std::log2(static_cast<double>(n)); }

double SquaredDistance(const Extents& a, const Extents& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(Log2(a[i]) - Log2(b[i]), 2);
  return sum;
}

}  // namespace

CpuMachine MeasuredMachine(CpuMachine machine, const Evidence& evidence) {
  const auto figure = [&](const char* name) { return evidence.figures.at(name).value; };
  // The clock stays the nominal one: cycles are a unit of time.
  const auto cycles = [&](const char* name) { return figure(name) * machine.clock; };
  machine.fma = 2 * machine.lanes * machine.clock / figure("fma_flops");
  // Where they were not measured: as many instructions for each multiply-add as it has by default.
  const double slower = machine.fma / 0.5;
  const auto known = [&](const char* name, double otherwise) {
    return evidence.figures.contains(name) ? cycles(name) : otherwise * slower;
  };
  machine.bf16_dot = known("bf16_dot_seconds", machine.bf16_dot);
  if (machine.tile_product > 0) {
    const double of_class = machine.tile_product;
    machine.tile_product = known("tile_product_seconds", machine.tile_product);
    machine.tile_load *= machine.tile_product / of_class;
  }
  machine.simple = cycles("simple_seconds");
  machine.divide = cycles("divide_seconds");
  machine.square_root = cycles("square_root_seconds");
  machine.exp2 = cycles("exp2_seconds");
  machine.log2 = cycles("log2_seconds");
  machine.sine = cycles("sine_seconds");
  machine.l2_bandwidth = figure("l2_bandwidth");
  machine.l3_bandwidth = figure("l3_bandwidth");
  machine.memory_bandwidth = figure("memory_bandwidth");
  // A stream's own work on a command was not measured.
  machine.launch = figure("launch_seconds") + machine.launch_alone;
  if (evidence.target.l2_bytes > 0) {
    machine.l2_bytes = static_cast<double>(evidence.target.l2_bytes) / 2;
  }
  machine.l3_bytes = std::max(machine.l2_bytes, figure("l3_reach_bytes"));
  return machine;
}

CalibratedCostModel::CalibratedCostModel(const CpuMachine& machine, const Evidence& evidence)
    : CpuCostModel(MeasuredMachine(machine, evidence)), revision_(PrintEvidence(evidence)) {
  for (const EvidencePoint& point : evidence.points) {
    const std::optional<Probe> probe = FindProbe(point.probe);
    if (!probe) continue;  // of a later program of the same version
    const l0::Kernel kernel = ProbeKernel(*probe, point.extents);
    double said = 0;
    int64_t blocks = 1;
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, target())) {
      const double seconds = CpuCostModel::KernelSeconds(kernel, schedule);
      if (said > 0 && said <= seconds) continue;
      said = seconds;
      blocks = schedule.blocks;
    }
    // What was timed has a launch in it.
    const double launch = LaunchSeconds(static_cast<double>(blocks));
    const double took = std::max(point.seconds.value - launch, 0.1 * point.seconds.value);
    constexpr double kMost = 20;
    const double ratio = std::clamp(took / said, 1 / kMost, kMost);
    points_[static_cast<size_t>(*probe)].push_back({point.extents, std::log(ratio)});
  }
}

namespace {

// As it will be under the schedule.
std::optional<Likeness> Like(const l0::Kernel& kernel, const l0::Schedule& schedule) {
  std::optional<Likeness> like = ProbeLike(kernel);
  if (like && IsProduct(like->probe) && !schedule.in_tiles.empty()) like->probe = Probe::kTiles;
  return like;
}

}  // namespace

CalibratedCostModel::Ratio CalibratedCostModel::RatioOf(const Likeness& like) const {
  const std::vector<Point>& points = points_[static_cast<size_t>(like.probe)];
  if (points.empty()) return {1, "interpolated"};
  constexpr size_t kNeighbours = 6;
  std::vector<std::pair<double, const Point*>> near;
  Extents low = points.front().extents;
  Extents high = low;
  for (const Point& point : points) {
    const double distance = SquaredDistance(point.extents, like.extents);
    if (distance == 0) return {std::exp(point.log_ratio), "measured"};
    near.emplace_back(distance, &point);
    for (size_t i = 0; i < low.size(); ++i) {
      low[i] = std::min(low[i], point.extents[i]);
      high[i] = std::max(high[i], point.extents[i]);
    }
  }
  // Ties go to the point that was measured first.
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  near.resize(std::min(near.size(), kNeighbours));
  double weights = 0;
  double sum = 0;
  for (const auto& [distance, point] : near) {
    weights += 1 / distance;
    sum += point->log_ratio / distance;
  }
  bool inside = true;
  for (size_t i = 0; i < low.size(); ++i) {
    inside = inside && like.extents[i] >= low[i] && like.extents[i] <= high[i];
  }
  return {std::exp(sum / weights), inside ? "interpolated" : "extrapolated"};
}

double CalibratedCostModel::KernelSeconds(const l0::Kernel& kernel,
                                          const l0::Schedule& schedule) const {
  const std::optional<Likeness> like = Like(kernel, schedule);
  return CpuCostModel::KernelSeconds(kernel, schedule) * (like ? RatioOf(*like).value : 1);
}

double CalibratedCostModel::KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule,
                                          const Traffic& traffic) const {
  const double blocks = static_cast<double>(std::max<int64_t>(1, schedule.blocks));
  std::optional<Likeness> like = Like(kernel, schedule);
  if (like && IsProduct(like->probe)) {
    return std::max(KernelSeconds(kernel, schedule), TrafficSeconds(traffic, blocks));
  }
  // What comes from memory is like a probe that no cache holds.
  if (like && traffic.memory > traffic.l2 + traffic.l3) {
    const double elements = 2 * machine().l3_bytes / 8;
    double own = 1;
    for (int64_t extent : like->extents) own *= static_cast<double>(extent);
    if (own < elements) {
      like->extents[0] =
          static_cast<int64_t>(static_cast<double>(like->extents[0]) * elements / own);
    }
  }
  return CpuCostModel::KernelSeconds(kernel, schedule, traffic) * (like ? RatioOf(*like).value : 1);
}

std::string_view CalibratedCostModel::KernelEvidence(const l0::Kernel& kernel) const {
  std::optional<Likeness> like = ProbeLike(kernel);
  if (!like) return Ratio{}.evidence;
  const bool tiles = machine().tile_product > 0 && l0::CountWork(kernel).bf16_dots > 0;
  if (tiles) like->probe = Probe::kTiles;
  return RatioOf(*like).evidence;
}

std::string_view CalibratedCostModel::AccessEvidence(const l0::lower::AccessWork& work) const {
  return work.pattern == l0::lower::Pattern::kStrided ? "analytical" : "interpolated";
}

std::string_view CalibratedCostModel::ComputeEvidence(const l0::lower::ComputeWork& work) const {
  const bool measured =
      tensor::IsFloat(work.dtype) && work.op != tensor::Op::kMod && work.op != tensor::Op::kRandom;
  return measured ? "interpolated" : "analytical";
}

std::string CalibratedCostModel::figures() const {
  return CpuCostModel::figures() + "\n" + revision_;
}

bool Describes(const Evidence& evidence, const l1::SystemNode& node) {
  std::string features;
  std::vector<std::string> sorted = node.features;
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& feature : sorted) features += (features.empty() ? "" : " ") + feature;
  return node.cores == evidence.target.cores && features == evidence.target.features;
}

}  // namespace l3c::cost
