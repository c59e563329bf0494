#include "cost/machine.h"

#include <algorithm>
#include <cmath>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/tile_product.h"
#include "layers/support/units.h"

namespace l3c::cost {

using l0::lower::AccessWork;
using l0::lower::ComputeWork;
using l0::lower::Pattern;
using tensor::Op;

CpuMachine MachineOf(const l1::SystemNode& node) {
  CpuMachine machine;
  machine.cores = std::max<int64_t>(1, node.cores);
  const auto has = [&](const char* feature) {
    return std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  };
  if (!has("avx512f") && !node.features.empty()) {
    machine.lanes = has("avx2") ? 8 : 4;
    machine.registers = 16;
    machine.name = has("avx2") ? "x86-64-v3" : "x86-64-v2";
  }
  if (!has("avx512bf16") && !node.features.empty()) {
    // Op by op (backends/llvm/emit_bf16.h): four halves, two multiply-adds, and denormals at each.
    machine.bf16_dot = 12;
    machine.bf16_pair = 8;
  }
  if (has("amx_bf16") && has("avx512f")) {
    machine.tile_product = 16;
    // CPUs with tiles take two cycles for a vector of these.
    machine.bf16_dot = std::max(machine.bf16_dot, 2.0);
  }
  return machine;
}

std::string CpuCostModel::figures() const {
  const CpuMachine& m = machine_;
  std::string text = m.name;
  const double figures[] = {static_cast<double>(m.cores),
                            static_cast<double>(m.lanes),
                            static_cast<double>(m.registers),
                            m.clock,
                            m.fma,
                            m.bf16_dot,
                            m.bf16_pair,
                            m.tile_product,
                            m.tile_load,
                            m.simple,
                            m.divide,
                            m.square_root,
                            m.exp2,
                            m.log2,
                            m.sine,
                            m.vector_load,
                            m.vector_store,
                            m.scalar_load,
                            m.fma_latency,
                            m.lane_fold,
                            m.l2_bytes,
                            m.l2_bandwidth,
                            m.l3_bytes,
                            m.l3_bandwidth,
                            m.memory_bandwidth,
                            m.launch,
                            m.launch_alone};
  // Whoever adds a figure writes it here as well: name, cores, two int, and the reals.
  static_assert(sizeof(CpuMachine) == sizeof(std::string) + sizeof(int64_t) + 2 * sizeof(int) +
                                          sizeof(figures) - 3 * sizeof(double));
  for (double figure : figures) text += " " + support::PrintReal(figure);
  return text;
}

double CpuCostModel::Cores(double blocks) const {
  return std::clamp(blocks, 1.0, static_cast<double>(machine_.cores));
}

double CpuCostModel::Bandwidth(double buffer, double cores) const {
  if (buffer <= machine_.l2_bytes) return machine_.l2_bandwidth * cores;
  if (buffer <= machine_.l3_bytes) return machine_.l3_bandwidth * cores;
  return machine_.memory_bandwidth;
}

double CpuCostModel::LoadSeconds(const AccessWork& work) const {
  const double cores = Cores(work.blocks);
  const double vectors = work.points * work.element / 4 / std::max(1.0, work.lanes);
  double cycles = 0;
  switch (work.pattern) {
    case Pattern::kContiguous:
      cycles = vectors * machine_.vector_load;
      break;
    // Loaded once for the lanes and usually for a whole row.
    case Pattern::kBroadcast:
      cycles = vectors * machine_.vector_load / 8;
      break;
    case Pattern::kStrided:
      cycles = work.points * machine_.scalar_load;
      break;
  }
  const double arithmetic = cycles / machine_.clock / cores;
  return std::max(arithmetic, work.bytes / Bandwidth(work.buffer, cores));
}

double CpuCostModel::StoreSeconds(const AccessWork& work) const {
  const double cores = Cores(work.blocks);
  const double vectors = work.points * work.element / 4 / std::max(1.0, work.lanes);
  const double arithmetic = vectors * machine_.vector_store / machine_.clock / cores;
  // A line is read before it is written.
  const double traffic = work.buffer > machine_.l3_bytes ? 2 * work.bytes : work.bytes;
  return std::max(arithmetic, traffic / Bandwidth(work.buffer, cores));
}

double CpuCostModel::ComputeSeconds(const ComputeWork& work) const {
  double cycles = machine_.simple;
  switch (work.op) {
    case Op::kRecip:
      cycles = machine_.divide;
      break;
    case Op::kMod:
      cycles = machine_.divide * 2;
      break;
    case Op::kSqrt:
      cycles = machine_.square_root;
      break;
    case Op::kExp2:
      cycles = machine_.exp2;
      break;
    case Op::kLog2:
      cycles = machine_.log2;
      break;
    case Op::kSin:
      cycles = machine_.sine;
      break;
    case Op::kBf16Pair:
      cycles = machine_.bf16_pair;
      break;
    case Op::kRandom:  // ten rounds of two products, on lanes of twice the width
      cycles = machine_.simple * 100;
      break;
    default:
      break;
  }
  const double width = static_cast<double>(tensor::SizeOf(work.dtype)) > 4 ? 2 : 1;
  return work.points / std::max(1.0, work.lanes) * cycles * width / machine_.clock /
         Cores(work.blocks);
}

namespace {

// A sum of lanes that is packed with others takes part in about one fold of two registers, which is
// two shuffles and an addition.
constexpr double kPackedFold = 2;

// Cycles for the lanes of accumulators to be folded into one number each, at `lane_fold` alone.
double FoldCycles(const l0::Kernel& kernel, const l0::Schedule& schedule, double lane_fold) {
  const std::vector<l0::AxisSet> free = l0::FreeAxes(kernel);
  double cycles = 0;
  for (l0::UopId id = 0; id < kernel.uops.size(); ++id) {
    const l0::Uop& uop = kernel.uops[id];
    if (uop.op != l0::UOp::kReduce) continue;
    bool lanes = false;
    for (l0::AxisId axis : uop.axes) lanes |= schedule.axes[axis].vector > 1;
    if (!lanes) continue;
    double points = 1;
    bool packed = false;
    for (l0::AxisId axis : l0::AxesIn(free[id])) {
      points *= static_cast<double>(kernel.axes[axis].extent);
      packed |= schedule.axes[axis].vector > 1;
    }
    cycles += points * (packed ? kPackedFold : lane_fold);
  }
  return cycles;
}

// Of the first level, what the tiles of a body's factors may take to be found there again.
constexpr double kNearTileBytes = 32 << 10;
// A tile that is not there comes at the second level's pace.
constexpr double kFarTileLoad = 2.5;
// Sums are stored and loaded again, a row at a time; shapes are configured where tiles differ.
constexpr double kSumTileCycles = 40;
// Rows of a body lie a row of the result apart, and nothing fetches them ahead of its stores.
constexpr double kRowCycles = 100;
constexpr double kConfigureCycles = 200;

double TileCycles(const l0::Kernel& kernel, const l0::Schedule& schedule, const CpuMachine& m) {
  const l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
  const std::vector<l0::AxisSet> free = l0::FreeAxes(scheduled);
  double cycles = 0;
  for (l0::UopId id : schedule.in_tiles) {
    const auto product = l0::TileProductOf(scheduled, id, free);
    if (!product) continue;
    const auto tiles_of = [&](l0::AxisId axis) {
      return static_cast<double>((scheduled.axes[axis].extent + l0::kTileEdge - 1) / l0::kTileEdge);
    };
    double sums = 1;
    double bodies = 1;
    bool uneven = scheduled.axes[product->sum].extent % l0::kTileEdge != 0;
    for (l0::AxisId axis : l0::AxesIn(free[id])) {
      const l0::Axis& a = scheduled.axes[axis];
      const bool tiled = axis == product->rows || axis == product->columns;
      const auto extent = static_cast<double>(a.extent);
      sums *= tiled ? tiles_of(axis) : extent;
      bodies *= std::ceil(extent / static_cast<double>(a.tile));
      uneven |= tiled && a.extent % a.tile != 0;
    }
    const double panels = static_cast<double>((product->tall + product->wide) * l0::kTileEdge *
                                              scheduled.axes[product->sum].extent * 4);
    const double load = m.tile_load * (panels > kNearTileBytes ? kFarTileLoad : 1);
    cycles +=
        sums * tiles_of(product->sum) * std::max(m.tile_product, schedule.loads_per_fma * load);
    cycles += sums * kSumTileCycles +
              sums * l0::kTileEdge * kRowCycles / static_cast<double>(product->wide) +
              (uneven ? bodies * kConfigureCycles : 0);
  }
  return cycles;
}

}  // namespace

void CpuCostModel::AddTraffic(double distance, double bytes, double allocated,
                              Traffic& traffic) const {
  const double l2 = machine_.l2_bytes * static_cast<double>(machine_.cores);
  if (distance >= 0 && distance <= l2) {
    traffic.l2 += bytes;
    return;
  }
  // What a cache drops is not quite the least recently used: little beyond its size, some is there.
  double share = 0;
  if (distance >= 0) share = std::clamp(2 - distance / machine_.l3_bytes, 0.0, 1.0);
  traffic.l3 += share * bytes;
  traffic.memory += (1 - share) * (bytes + allocated);
}

double CpuCostModel::TrafficSeconds(const Traffic& traffic, double blocks) const {
  const double cores = Cores(blocks);
  return traffic.l2 / (machine_.l2_bandwidth * cores) +
         traffic.l3 / (machine_.l3_bandwidth * cores) + traffic.memory / machine_.memory_bandwidth;
}

double CpuCostModel::KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule) const {
  const l0::KernelWork work = l0::CountWork(kernel);
  const double blocks = static_cast<double>(std::max<int64_t>(1, schedule.blocks));
  const double bytes = work.bytes_read + work.bytes_written;
  return std::max(ArithmeticSeconds(kernel, schedule), bytes / Bandwidth(bytes, Cores(blocks)));
}

double CpuCostModel::KernelSeconds(const l0::Kernel& kernel, const l0::Schedule& schedule,
                                   const Traffic& traffic) const {
  const double blocks = static_cast<double>(std::max<int64_t>(1, schedule.blocks));
  return std::max(ArithmeticSeconds(kernel, schedule), TrafficSeconds(traffic, blocks));
}

double CpuCostModel::OtherCycles(const l0::KernelWork& work) const {
  return work.simple_flops * machine_.simple + work.divides * machine_.divide +
         work.transcendentals * machine_.exp2;
}

double CpuCostModel::ArithmeticSeconds(const l0::Kernel& kernel,
                                       const l0::Schedule& schedule) const {
  const l0::KernelWork work = l0::CountWork(kernel);
  std::vector<l0::AxisId> summed;  // with lanes
  int64_t stored = 1;              // lanes of what has none along a sum
  for (l0::AxisId axis = 0; axis < schedule.axes.size(); ++axis) {
    const l0::AxisSchedule& a = schedule.axes[axis];
    if (a.vector == 1) continue;
    if (a.kind == l0::AxisKind::kReduce) {
      summed.push_back(axis);
    } else {
      stored = std::max(stored, a.vector);
    }
  }
  const double lanes = schedule.lane_use * (summed.empty() ? static_cast<double>(stored)
                                                           : static_cast<double>(machine_.lanes));
  // A multiply-add waits for its accumulator, and for its operands from the first level.
  const double loads = schedule.loads_per_fma * machine_.vector_load;
  const double chains = std::max(1, schedule.accumulators);
  const double least = std::max(loads, machine_.fma_latency / chains);
  const double fma = work.multiply_adds > 0 ? std::max(machine_.fma, least) : 0;
  const bool tiles = !schedule.in_tiles.empty();
  const double dot = work.bf16_dots > 0 && !tiles ? std::max(machine_.bf16_dot, least) : 0;
  double cycles = work.multiply_adds * fma + work.bf16_dots * dot;
  if (summed.empty()) {
    cycles += OtherCycles(work);
  } else {
    // What is made of sums along lanes has those of what it is stored along, or none.
    const double along = OtherCycles(l0::CountWork(kernel, summed));
    cycles += along + (OtherCycles(work) - along) * lanes / static_cast<double>(stored);
  }
  cycles /= std::max(1.0, lanes);
  cycles += FoldCycles(kernel, schedule, machine_.lane_fold);
  if (tiles) cycles += TileCycles(kernel, schedule, machine_);
  const double blocks = static_cast<double>(std::max<int64_t>(1, schedule.blocks));
  const double cores = Cores(blocks);
  // The last round of blocks may leave cores idle.
  const double rounds = std::ceil(blocks / cores);
  // What is read from afar a piece at a time mostly comes while the kernel computes.
  constexpr double kHidden = 4;
  const double far = schedule.far_bytes / (kHidden * machine_.l3_bandwidth * cores);
  return cycles / machine_.clock * rounds / blocks + far;
}

l0::ScheduleTarget CpuCostModel::target() const {
  l0::ScheduleTarget target;
  target.vector_registers = machine_.registers;
  target.lanes = machine_.lanes;
  target.workers = static_cast<int>(machine_.cores);
  target.tiles = machine_.tile_product > 0;
  return target;
}

}  // namespace l3c::cost
