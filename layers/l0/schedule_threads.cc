#include <algorithm>
#include <string>
#include <vector>

#include "layers/l0/gpu_launch.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/scheduler.h"

namespace l3c::l0 {
namespace {

constexpr int64_t kThreads = 256;  // of a thread block that has no reason for another number
constexpr int64_t kMaxVector = 4;  // words that a thread loads at once

}  // namespace

// Each candidate is legal for itself: Keep leaves out the others. One thread that does everything
// always is.
void Scheduler::Threads() {
  const int64_t widest = lanes_ < target_.lanes ? kMaxVector / 2 : kMaxVector;
  const bool reduces = std::any_of(kernel_.uops.begin(), kernel_.uops.end(),
                                   [](const Uop& uop) { return uop.op == UOp::kReduce; });
  if (reduces) {
    for (int64_t vector : {widest, int64_t{1}}) {
      ThreadRows({target_.gpu, kGpuWarp, 1, kThreads / kGpuWarp}, vector);
      ThreadRows({target_.gpu, kThreads, 1, 1}, vector);
    }
  }
  for (int64_t vector = widest; vector > 0; vector /= 2) ThreadEach(vector);
  Schedule alone = Start("one thread");
  alone.threads = GpuThreads{target_.gpu, 1, 1, 1};
  Keep(alone);
}

void Scheduler::ThreadEach(int64_t vector) {
  Schedule schedule = Start("threads x" + std::to_string(vector));
  schedule.threads = GpuThreads{target_.gpu, 1, 1, kThreads};
  std::vector<UopId> all;
  for (UopId id = 0; id < kernel_.uops.size(); ++id) all.push_back(id);
  AxisSet grid = 0;
  for (AxisId axis : grid_) grid |= AxisBit(axis);
  const std::optional<AxisId> fastest = AxisToDeal(grid, all);
  std::vector<AxisId> order;
  for (AxisId axis : grid_) {
    if (axis != fastest) order.push_back(axis);
    schedule.axes[axis].kind = AxisKind::kGrid;
  }
  if (fastest) {
    order.push_back(*fastest);
    AxisSchedule& axis = schedule.axes[*fastest];
    axis.block = axis.tile = axis.vector = std::min(vector, LargestPowerOfTwo(Extent(*fastest)));
  }
  if (Keep(schedule, order) || !fastest) return;
  // Blocks along other axes would meet in some store.
  for (AxisId axis : grid_) {
    if (axis != fastest) schedule.axes[axis].kind = AxisKind::kLoop;
  }
  Keep(schedule, order);
}

void Scheduler::ThreadRows(const GpuThreads& threads, int64_t vector) {
  Schedule schedule =
      Start("rows of " + std::to_string(threads.x) + " threads x" + std::to_string(vector));
  schedule.threads = threads;
  for (AxisId axis : AxesIn(RowAxes())) schedule.axes[axis].kind = AxisKind::kGrid;
  const auto dealt_out = [&](AxisSet set) {
    const std::vector<AxisId> axes = AxesIn(set);
    return std::any_of(axes.begin(), axes.end(),
                       [&](AxisId axis) { return schedule.axes[axis].across != Across::kNone; });
  };
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    const Uop& uop = kernel_.uops[id];
    if ((uop.op != UOp::kStore && uop.op != UOp::kReduce) || dealt_out(ScopeOf(id))) continue;
    const AxisSet candidates = uop.op == UOp::kReduce ? SetOf(uop.axes) : free_[id] & ~RowAxes();
    if (const auto axis = AxisToDeal(candidates, ConeOf(id))) DealOut(schedule, *axis, vector);
  }
  Keep(schedule);
}

AxisSet Scheduler::RowAxes() const {
  AxisSet rows = 0;
  for (AxisId axis : grid_) rows |= AxisBit(axis);
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    if (kernel_.uops[id].op == UOp::kReduce && (free_[id] & rows) != 0) rows &= free_[id];
  }
  return rows;
}

std::optional<AxisId> Scheduler::AxisToDeal(AxisSet set, const std::vector<UopId>& uops) const {
  const std::optional<AxisId> contiguous = BestOf(set, uops);
  if (contiguous && Extent(*contiguous) >= kGpuWarp) return contiguous;
  std::optional<AxisId> longest = contiguous;
  for (AxisId axis : AxesIn(set)) {
    if (Extent(axis) > (longest ? Extent(*longest) : 1)) longest = axis;
  }
  return longest;
}

void Scheduler::DealOut(Schedule& schedule, AxisId axis, int64_t vector) const {
  AxisSchedule& dealt = schedule.axes[axis];
  dealt.across = Across::kX;
  if (!VectorFits(schedule, axis)) return;
  dealt.tile = dealt.vector = std::min(vector, LargestPowerOfTwo(Extent(axis)));
}

}  // namespace l3c::l0
