#include "layers/l0/kernel_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_verify.h"
#include "layers/l0/scheduler.h"

namespace l3c::l0 {
namespace {

// Kernels with less work than this run as one block: handing out more costs more than it gains.
constexpr double kSmallWork = 16384;
// Blocks for each worker, so that one that started late still evens out.
constexpr int64_t kBlocksPerWorker = 8;

// The largest divisor of `n` up to `most`. n is at most kTried², as extents are (kMaxExtent), so
// that of a divisor and its quotient one is tried.
int64_t LargestDivisor(int64_t n, int64_t most) {
  constexpr int64_t kTried = int64_t{1} << 20;
  most = std::min(most, n);
  const int64_t first = (n + most - 1) / most;
  for (int64_t parts = first; parts <= std::min(n, first + kTried); ++parts) {
    if (n % parts == 0) return n / parts;
  }
  int64_t divisor = std::min(most, kTried);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

Scheduler::Scheduler(const Kernel& kernel, const ScheduleTarget& target)
    : kernel_(kernel), target_(target), free_(FreeAxes(kernel)) {
  lanes_ = target.lanes;
  for (const Uop& uop : kernel.uops) {
    if (SizeOf(uop.dtype) == 8 && uop.op != UOp::kRange && tensor::IsFloat(uop.dtype)) {
      lanes_ = std::max(target.lanes / 2, 1);
    }
  }
  AxisSet everywhere = ~AxisSet{0};
  for (UopId id = 0; id < kernel.uops.size(); ++id) {
    const Uop& uop = kernel.uops[id];
    work_ = std::max(work_, Points(ScopeOf(id)));
    if (uop.op == UOp::kStore) everywhere &= AxesOf(uop.index);
  }
  for (AxisId axis : AxesIn(everywhere & AllAxes())) {
    if (kernel.axes[axis].kind != AxisKind::kReduce && Extent(axis) > 1) grid_.push_back(axis);
  }
  contraction_ = FindContraction();
}

KernelClass Scheduler::Class() const {
  if (contraction_) return KernelClass::kMatmul;
  bool columns = false;
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    if (kernel_.uops[id].op != UOp::kReduce) continue;
    if (BestReduceAxis(id)) return KernelClass::kRows;
    columns = true;
  }
  return columns ? KernelClass::kColumns : KernelClass::kElementwise;
}

std::vector<Schedule> Scheduler::Candidates() {
  if (!target_.gpu.empty()) {
    Threads();
    return std::move(found_);
  }
  switch (Class()) {
    case KernelClass::kMatmul:
      Matmul();
      break;
    case KernelClass::kRows:
      Rows();
      break;
    default:
      Vectors();
      break;
  }
  Schedule plain = Start("plain");
  Keep(plain);
  if (found_.empty()) {  // the kernel itself is not sound; the verifier will say so
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) plain.order.push_back(axis);
    found_.push_back(plain);
  }
  if (found_.size() > kMaxCandidates) found_.resize(kMaxCandidates);
  return std::move(found_);
}

double Scheduler::Points(AxisSet set) const {
  double points = 1;
  for (AxisId axis : AxesIn(set)) points *= static_cast<double>(Extent(axis));
  return points;
}

AxisSet Scheduler::ScopeOf(UopId id) const {
  const Uop& uop = kernel_.uops[id];
  AxisSet set = free_[id];
  if (uop.op == UOp::kReduce) set |= free_[uop.src[0]] | SetOf(uop.axes);
  return set;
}

std::vector<UopId> Scheduler::ConeOf(UopId root) const {
  std::vector<bool> seen(kernel_.uops.size(), false);
  std::vector<UopId> stack = {root};
  std::vector<UopId> cone;
  while (!stack.empty()) {
    const UopId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    cone.push_back(id);
    const std::vector<UopId>& src = kernel_.uops[id].src;
    stack.insert(stack.end(), src.begin(), src.end());
  }
  return cone;
}

double Scheduler::Contiguity(AxisId axis, const std::vector<UopId>& uops) const {
  constexpr double kStoreWeight = 1.5;
  double score = 0;
  for (UopId id : uops) {
    const Uop& uop = kernel_.uops[id];
    if ((uop.op != UOp::kLoad && uop.op != UOp::kStore) || !(free_[id] & AxisBit(axis))) continue;
    const double weight = Points(free_[id]) * (uop.op == UOp::kStore ? kStoreWeight : 1);
    const int64_t coefficient = CoefficientOf(uop.index, axis);
    const bool row = IsDynamic(uop) && (free_[uop.src.back()] & AxisBit(axis));
    if (row || (coefficient != 0 && coefficient != 1)) score -= weight;
    if (!row && coefficient == 1) score += weight;
  }
  return score;
}

std::optional<AxisId> Scheduler::BestOf(AxisSet set, const std::vector<UopId>& uops) const {
  std::optional<AxisId> best;
  double best_score = 0;
  for (AxisId axis : AxesIn(set)) {
    if (Extent(axis) < 2) continue;
    const double score = Contiguity(axis, uops);
    if (score > best_score) {
      best = axis;
      best_score = score;
    }
  }
  return best;
}

std::optional<AxisId> Scheduler::BestReduceAxis(UopId reduce) const {
  const std::vector<UopId> cone = ConeOf(kernel_.uops[reduce].src[0]);
  const AxisSet bound = SetOf(kernel_.uops[reduce].axes);
  const std::optional<AxisId> best = BestOf(bound | free_[reduce], cone);
  return best && (AxisBit(*best) & bound) ? best : std::nullopt;
}

std::optional<AxisId> Scheduler::FreeReduceAxis(UopId reduce) const {
  const AxisSet bound = SetOf(kernel_.uops[reduce].axes);
  for (UopId id : ConeOf(kernel_.uops[reduce].src[0])) {
    if (kernel_.uops[id].op == UOp::kLoad && (free_[id] & bound)) return std::nullopt;
  }
  const AxisId last = kernel_.uops[reduce].axes.back();
  return Extent(last) >= lanes_ ? std::optional<AxisId>(last) : std::nullopt;
}

Schedule Scheduler::Start(std::string name) const {
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.kernel_class = Class();
  schedule.axes.resize(kernel_.axes.size());
  for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) {
    schedule.axes[axis].kind =
        kernel_.axes[axis].kind == AxisKind::kReduce ? AxisKind::kReduce : AxisKind::kLoop;
  }
  return schedule;
}

void Scheduler::SetVector(Schedule& schedule, AxisId axis, int64_t registers) const {
  schedule.axes[axis].vector = lanes_;
  schedule.axes[axis].tile = std::min(registers * lanes_, RoundUp(Extent(axis), lanes_));
}

bool Scheduler::HasVector(const Schedule& schedule, AxisSet set) const {
  for (AxisId axis : AxesIn(set)) {
    if (schedule.axes[axis].vector > 1) return true;
  }
  return false;
}

void Scheduler::SetStoreVectors(Schedule& schedule) const {
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    if (kernel_.uops[id].op != UOp::kStore || HasVector(schedule, free_[id])) continue;
    if (const std::optional<AxisId> axis = BestOf(free_[id], {id})) SetVector(schedule, *axis, 1);
  }
}

void Scheduler::SetVectors(Schedule& schedule, int64_t registers) const {
  std::vector<UopId> all;
  for (UopId id = 0; id < kernel_.uops.size(); ++id) all.push_back(id);
  for (UopId id : all) {
    if (kernel_.uops[id].op != UOp::kStore || HasVector(schedule, free_[id])) continue;
    const std::optional<AxisId> axis = BestOf(free_[id], all);
    if (axis) SetVector(schedule, *axis, registers);
  }
  for (UopId id : all) {
    if (kernel_.uops[id].op != UOp::kReduce || HasVector(schedule, ScopeOf(id))) continue;
    std::optional<AxisId> axis = BestReduceAxis(id);
    if (!axis) axis = FreeReduceAxis(id);
    if (axis && VectorFits(schedule, *axis)) SetVector(schedule, *axis, registers);
  }
}

bool Scheduler::VectorFits(const Schedule& schedule, AxisId axis) const {
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    const AxisSet scope = ScopeOf(id);
    if ((scope & AxisBit(axis)) && HasVector(schedule, scope & ~AxisBit(axis))) return false;
  }
  return true;
}

void Scheduler::SetGrid(Schedule& schedule, AxisId axis) const {
  AxisSchedule& a = schedule.axes[axis];
  a.kind = AxisKind::kGrid;
  const int64_t tiles = std::max<int64_t>((Extent(axis) + a.tile - 1) / a.tile, 1);
  if (work_ < kSmallWork) {
    a.block = tiles * a.tile;
    return;
  }
  const int64_t wanted = kBlocksPerWorker * target_.workers;
  int64_t most = (tiles + wanted - 1) / wanted;
  if (target_.workers > 1) {
    // The worker that has the most then has no more than its part of the tiles, rounded up: its
    // blocks are whole just when their length divides that part.
    most = LargestDivisor((tiles + target_.workers - 1) / target_.workers, most);
  }
  a.block = most * a.tile;
}

std::optional<AxisId> Scheduler::GridAxis(const Schedule& schedule) const {
  std::optional<AxisId> best;
  int64_t most = 1;
  for (AxisId axis : grid_) {
    const int64_t tile = schedule.axes[axis].tile;
    const int64_t tiles = (Extent(axis) + tile - 1) / tile;
    if (tiles >= 2 * target_.workers) return axis;
    if (tiles > most) {
      most = tiles;
      best = axis;
    }
  }
  return best;
}

bool Scheduler::Keep(Schedule schedule, std::vector<AxisId> first) {
  const auto append = [&](AxisId axis) {
    auto& order = schedule.order;
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  };
  const auto append_kind = [&](AxisKind kind) {
    for (AxisId axis : first) {
      if (schedule.axes[axis].kind == kind) append(axis);
    }
    for (AxisId axis = 0; axis < schedule.axes.size(); ++axis) {
      if (schedule.axes[axis].kind == kind) append(axis);
    }
  };
  append_kind(AxisKind::kGrid);
  append_kind(AxisKind::kLoop);
  append_kind(AxisKind::kReduce);
  for (const Schedule& other : found_) {
    if (other.split == schedule.split && other.order == schedule.order &&
        other.staged == schedule.staged && other.in_tiles == schedule.in_tiles &&
        other.threads == schedule.threads && Same(other.axes, schedule.axes)) {
      return true;
    }
  }
  const Kernel scheduled = ApplySchedule(kernel_, schedule);
  support::Diagnostics diagnostics;
  if (!VerifyKernel(scheduled, diagnostics)) return false;
  schedule.blocks = NumBlocks(scheduled);
  schedule.lane_use = LaneUse(schedule);
  found_.push_back(std::move(schedule));
  return true;
}

bool Scheduler::Same(const std::vector<AxisSchedule>& x, const std::vector<AxisSchedule>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const AxisSchedule& a, const AxisSchedule& b) {
                      return a.kind == b.kind && a.block == b.block && a.tile == b.tile &&
                             a.vector == b.vector && a.across == b.across;
                    });
}

double Scheduler::LaneUse(const Schedule& schedule) const {
  double use = 1;
  for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) {
    const AxisSchedule& a = schedule.axes[axis];
    if (a.vector == 1 || Extent(axis) == 0) continue;
    if (contraction_ && HasVector(schedule, contraction_->bound & ~AxisBit(axis))) continue;
    use *= static_cast<double>(Extent(axis)) / static_cast<double>(RoundUp(Extent(axis), a.vector));
  }
  return use;
}

void Scheduler::Vectors() {
  Schedule schedule = Start("transpose " + std::to_string(lanes_) + "x" + std::to_string(lanes_));
  SetVectors(schedule, 1);
  std::optional<AxisId> transposed = TransposedAxis(schedule);
  if (!transposed && Class() == KernelClass::kElementwise) {
    // More loads than stores may want lanes, but a block of what they read is transposed at once,
    // while each lane of a store along another axis is a store of its own.
    Schedule stores = Start(schedule.name);
    SetStoreVectors(stores);
    transposed = TransposedAxis(stores);
    if (transposed) schedule = stores;
  }
  if (transposed) {
    schedule.axes[*transposed].tile = lanes_;
    if (const std::optional<AxisId> split = GridAxis(schedule)) SetGrid(schedule, *split);
    Keep(schedule);
  }
  for (int64_t registers : {4, 2, 1}) {
    Schedule schedule = Start("vector " + std::to_string(registers * lanes_));
    SetVectors(schedule, registers);
    if (const std::optional<AxisId> axis = GridAxis(schedule)) {
      Schedule grid = schedule;
      SetGrid(grid, *axis);
      Keep(grid, RowsOutside(grid));
    }
    if (registers == 2) {
      schedule.name += " whole";
      Keep(schedule);
    }
  }
}

std::optional<AxisId> Scheduler::TransposedAxis(const Schedule& schedule) const {
  for (const Uop& uop : kernel_.uops) {
    if (uop.op != UOp::kLoad || IsDynamic(uop) || !uop.guards.empty()) continue;
    bool strided = false;
    std::optional<AxisId> contiguous;
    for (const auto& [axis, coefficient] : uop.index.terms) {
      if (schedule.axes[axis].vector > 1) strided = coefficient != 1;
      const bool free = schedule.axes[axis].kind != AxisKind::kReduce;
      if (coefficient == 1 && free && Extent(axis) >= lanes_) contiguous = axis;
    }
    if (strided && contiguous) return contiguous;
  }
  return std::nullopt;
}

void Scheduler::Rows() {
  for (const auto& [registers, rows] :
       {std::pair<int64_t, int64_t>{4, 1}, {4, 2}, {2, 1}, {1, 4}}) {
    Schedule schedule =
        Start("rows " + std::to_string(rows) + "x" + std::to_string(registers * lanes_));
    SetVectors(schedule, registers);
    const std::optional<AxisId> axis = GridAxis(schedule);
    if (axis && schedule.axes[*axis].tile == 1) schedule.axes[*axis].tile = rows;
    if (axis) SetGrid(schedule, *axis);
    Keep(schedule, RowsOutside(schedule));
  }
}

std::vector<AxisId> Scheduler::RowsOutside(const Schedule& schedule) const {
  std::vector<int> kept(kernel_.axes.size());
  bool sums = false;
  for (const Uop& uop : kernel_.uops) {
    if (uop.op != UOp::kStore || !uop.accumulate || IsDynamic(uop)) continue;
    sums = true;
    for (const auto& [axis, coefficient] : uop.index.terms) ++kept[axis];
  }
  std::vector<AxisId> order;
  if (!sums) return order;
  for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(), [&](AxisId a, AxisId b) {
    const bool a_lanes = schedule.axes[a].vector > 1;
    const bool b_lanes = schedule.axes[b].vector > 1;
    return a_lanes != b_lanes ? b_lanes : !a_lanes && kept[a] > kept[b];
  });
  return order;
}

namespace {

std::string NewAxisName(const Kernel& kernel, std::string name) {
  const auto taken = [&](const Axis& axis) { return axis.name == name; };
  while (std::any_of(kernel.axes.begin(), kernel.axes.end(), taken)) name += "_";
  return name;
}

Affine SplitTerm(Affine affine, const AxisSplit& split, AxisId inner) {
  const int64_t coefficient = CoefficientOf(affine, split.axis);
  if (coefficient == 0) return affine;
  for (auto& [axis, by] : affine.terms) {
    if (axis == split.axis) by *= split.block;
  }
  affine.terms.emplace_back(inner, coefficient);
  return affine;
}

Kernel SplitAxis(Kernel kernel, const AxisSplit& split) {
  const auto inner = static_cast<AxisId>(kernel.axes.size());
  Axis& outer = kernel.axes[split.axis];
  Axis points = outer;
  points.extent = split.block;
  outer.extent /= split.block;
  outer.name = NewAxisName(kernel, outer.name + "_block");
  kernel.axes.push_back(std::move(points));
  for (Uop& uop : kernel.uops) {
    uop.index = SplitTerm(std::move(uop.index), split, inner);
    for (Guard& guard : uop.guards) {
      guard.expression = SplitTerm(std::move(guard.expression), split, inner);
    }
  }
  return kernel;
}

Affine Renumber(const Affine& affine, const std::vector<AxisId>& position) {
  Affine renumbered;
  renumbered.constant = affine.constant;
  for (const auto& [axis, coefficient] : affine.terms) {
    renumbered.terms.emplace_back(position[axis], coefficient);
  }
  std::sort(renumbered.terms.begin(), renumbered.terms.end());
  return renumbered;
}

}  // namespace

KernelClass Classify(const Kernel& kernel) { return Scheduler(kernel, {}).Class(); }

std::vector<Schedule> CandidateSchedules(const Kernel& kernel, const ScheduleTarget& target) {
  return Scheduler(kernel, target).Candidates();
}

Kernel ApplySchedule(const Kernel& plain, const Schedule& schedule) {
  const Kernel kernel = schedule.split ? SplitAxis(plain, *schedule.split) : plain;
  Kernel scheduled = kernel;
  std::vector<AxisId> position(kernel.axes.size());
  for (AxisId i = 0; i < schedule.order.size(); ++i) {
    const AxisId from = schedule.order[i];
    position[from] = i;
    Axis& axis = scheduled.axes[i];
    axis = kernel.axes[from];
    axis.kind = schedule.axes[from].kind;
    axis.block = schedule.axes[from].block;
    axis.tile = schedule.axes[from].tile;
    axis.vector = schedule.axes[from].vector;
    axis.across = schedule.axes[from].across;
  }
  for (Uop& uop : scheduled.uops) {
    uop.index = Renumber(uop.index, position);
    for (Guard& guard : uop.guards) guard.expression = Renumber(guard.expression, position);
    if (uop.op == UOp::kRange) uop.axis = position[uop.axis];
    for (AxisId& axis : uop.axes) axis = position[axis];
    std::sort(uop.axes.begin(), uop.axes.end());
    uop.staged = false;
    uop.in_tiles = false;
  }
  for (UopId id : schedule.staged) scheduled.uops[id].staged = true;
  for (UopId id : schedule.in_tiles) scheduled.uops[id].in_tiles = true;
  scheduled.launch = LaunchOf(scheduled, schedule.threads);
  return scheduled;
}

}  // namespace l3c::l0
