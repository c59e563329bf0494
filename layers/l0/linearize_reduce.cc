#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {
namespace {

// Reductions that share a loop may hold this many accumulators together.
constexpr int64_t kMaxSharedAccumulators = 24;

}  // namespace

void Linearizer::SetNeutral(LinearOp& op, Fold fold, DType dtype) {
  op.number = 0;
  op.integer = 0;
  if (fold == Fold::kAdd) return;
  op.number = -std::numeric_limits<double>::infinity();
  if (dtype == DType::kI32) op.integer = std::numeric_limits<int32_t>::min();
  if (dtype == DType::kI64) op.integer = std::numeric_limits<int64_t>::min();
}

int64_t Linearizer::PointsIn(AxisSet set) const {
  int64_t points = 1;
  for (AxisId axis : AxesIn(set & open_)) points *= state_[axis].points;
  return points;
}

Linearizer::Reduction Linearizer::MakeReduction(UopId id) const {
  const Uop& uop = kernel_.uops[id];
  Reduction reduction;
  reduction.id = id;
  reduction.lanes = LanesOf(free_[id]);
  for (AxisId axis : uop.axes) {
    const Axis& a = kernel_.axes[axis];
    if (a.vector == 1) continue;
    reduction.lanes = a.vector;
    reduction.partials = (std::min(a.tile, a.extent) + a.vector - 1) / a.vector;
    reduction.partials = std::max<int64_t>(reduction.partials, 1);
  }
  return reduction;
}

void Linearizer::EmitReduce(UopId id) {
  const std::vector<AxisId>& axes = kernel_.uops[id].axes;
  const std::optional<AxisId> packed = PackedAxis(kernel_, kernel_.uops[id], free_[id]);
  const int64_t at = packed ? TakeApart(*packed) : 0;
  PreEmit(kernel_.uops[id].src);
  std::vector<Reduction> group = {MakeReduction(id)};
  int64_t held = group[0].partials * PointsIn(free_[id]);
  const std::vector<UopId> siblings = chain_.back().reduces;
  for (UopId other : siblings) {
    const Uop& uop = kernel_.uops[other];
    if (other == id || uop.axes != axes || uop.in_tiles || IsKnown(other) ||
        NeedsPendingReduce(uop.src[0])) {
      continue;
    }
    const std::optional<AxisId> apart = PackedAxis(kernel_, uop, free_[other]);
    if (apart && apart != packed) continue;
    const Reduction reduction = MakeReduction(other);
    held += reduction.partials * PointsIn(free_[other]);
    if (held > kMaxSharedAccumulators) break;
    PreEmit(uop.src);
    group.push_back(reduction);
  }

  std::vector<UopId> operands;
  AxisSet all_free = 0;
  for (Reduction& reduction : group) {
    const Uop& uop = kernel_.uops[reduction.id];
    operands.push_back(uop.src[0]);
    all_free |= free_[reduction.id];
    ForPoints(free_[reduction.id], [&] {
      std::vector<Reg>& partials = reduction.accumulators[PointOf(free_[reduction.id])];
      for (int64_t p = 0; p < reduction.partials; ++p) {
        LinearOp neutral = Op(UOp::kConst);
        SetNeutral(neutral, uop.fold, uop.dtype);
        partials.push_back(Append(neutral, uop.dtype, reduction.lanes));
      }
    });
  }
  ReduceLoops(group, operands, all_free, axes, 0);
  if (full_) return;
  for (Reduction& reduction : group) Finish(reduction);
  if (!packed) return;
  PutTogether(*packed, at);
  for (const Reduction& reduction : group) Pack(reduction, *packed);
}

void Linearizer::ReduceLoops(std::vector<Reduction>& group, const std::vector<UopId>& operands,
                             AxisSet all_free, const std::vector<AxisId>& axes, size_t depth) {
  if (full_) return;
  if (depth < axes.size()) {
    EmitAxis(axes[depth], operands, [&] {
      if (depth + 1 < axes.size()) PreEmit(operands);
      ReduceLoops(group, operands, all_free, axes, depth + 1);
    });
    return;
  }
  AxisSet bound = 0;
  for (AxisId axis : axes) bound |= AxisBit(axis);
  if (!axes.empty()) FetchRows(operands, axes.back());
  ForPoints(bound, [&] {
    ForTile(all_free, [&] {
      for (Reduction& reduction : group) {
        if (AtFirstPoint(all_free & ~free_[reduction.id])) Accumulate(reduction, bound);
      }
    });
  });
}

void Linearizer::Accumulate(Reduction& reduction, AxisSet bound) {
  const Uop& uop = kernel_.uops[reduction.id];
  int64_t partial = 0;
  for (AxisId axis : AxesIn(bound)) {
    if (kernel_.axes[axis].vector > 1) partial = state_[axis].point;
  }
  const Reg accumulator =
      reduction.accumulators.at(PointOf(free_[reduction.id]))[static_cast<size_t>(partial)];
  const uint16_t active = ActiveLanes(bound);
  const UopId operand = uop.src[0];
  LinearOp op = Op(UOp::kAdd);
  if (uop.fold == Fold::kMax) op.op = UOp::kMax;
  if (uop.fold == Fold::kAdd && Fuses(operand)) {
    op.op = UOp::kMulAcc;
    op.a = Wide(kernel_.uops[operand].src[0], reduction.lanes);
    op.b = Wide(kernel_.uops[operand].src[1], reduction.lanes);
    op.c = accumulator;
  } else {
    op.a = accumulator;
    op.b = Wide(operand, reduction.lanes);
  }
  if (active == 0) return Assign(op, accumulator);
  LinearOp select = Op(UOp::kWhere);
  select.active = active;
  select.b = Append(op, uop.dtype, reduction.lanes);
  select.c = accumulator;
  Assign(select, accumulator);
}

void Linearizer::Finish(Reduction& reduction) {
  const Uop& uop = kernel_.uops[reduction.id];
  const bool lanes_bound = LanesOf(free_[reduction.id]) != reduction.lanes;
  ForPoints(free_[reduction.id], [&] {
    const int64_t point = PointOf(free_[reduction.id]);
    std::vector<Reg> partials = reduction.accumulators.at(point);
    while (partials.size() > 1) {
      std::vector<Reg> folded;
      for (size_t i = 0; i + 1 < partials.size(); i += 2) {
        folded.push_back(Binary(uop.fold == Fold::kAdd ? UOp::kAdd : UOp::kMax, partials[i],
                                partials[i + 1], uop.dtype, reduction.lanes));
      }
      if (partials.size() % 2 == 1) folded.push_back(partials.back());
      partials = std::move(folded);
    }
    Reg result = partials[0];
    if (apart_ != kNoAxis && (free_[reduction.id] & AxisBit(apart_)) != 0) {
      reduction.sums[point] = result;
      return;
    }
    if (lanes_bound) {
      LinearOp fold = Op(UOp::kReduce);
      fold.fold = uop.fold;
      fold.a = result;
      result = Append(fold, uop.dtype, 1);
    }
    if (FoldsAcross(uop.axes)) {
      LinearOp fold = Op(UOp::kReduce);
      fold.fold = uop.fold;
      fold.a = result;
      fold.across = true;
      result = Append(fold, uop.dtype, out_.registers[result].lanes);
    }
    chain_.back().values[{reduction.id, point}] = result;
  });
}

void Linearizer::Pack(const Reduction& reduction, AxisId axis) {
  const AxisSet free = free_[reduction.id];
  if ((free & AxisBit(axis)) == 0) return;
  AxisState& state = state_[axis];
  ForPoints(free, [&] {
    const int64_t here = PointOf(free);
    const int64_t lanes = state.lanes;
    const int64_t point = TakeApart(axis);
    std::vector<Reg> sums;
    for (state.point = point * lanes; state.point < (point + 1) * lanes; ++state.point) {
      const bool inside = state.point < state.points;
      sums.push_back(
          inside ? reduction.sums.at(PointOf(free))
                 : Append(Op(UOp::kConst), kernel_.uops[reduction.id].dtype, reduction.lanes));
    }
    PutTogether(axis, point);
    chain_.back().values[{reduction.id, here}] = FoldAcross(std::move(sums), reduction);
  });
}

Reg Linearizer::FoldAcross(std::vector<Reg> sums, const Reduction& reduction) {
  const Uop& uop = kernel_.uops[reduction.id];
  int64_t lanes = reduction.lanes;
  for (int64_t width = reduction.lanes; width > 1; width /= 2) {
    if (sums.size() == 1) lanes /= 2;
    std::vector<Reg> folded;
    for (size_t i = 0; i < sums.size(); i += 2) {
      LinearOp fold = Op(UOp::kReduce);
      fold.fold = uop.fold;
      fold.a = sums[i];
      if (i + 1 < sums.size()) fold.b = sums[i + 1];
      fold.integer = width;
      folded.push_back(Append(fold, uop.dtype, lanes));
    }
    sums = std::move(folded);
  }
  return sums[0];
}

}  // namespace l3c::l0
