#include <algorithm>
#include <optional>
#include <vector>

#include "layers/l0/custom_op.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {

size_t Linearizer::LevelOf(AxisSet set) const {
  int level = 0;
  for (AxisId axis : AxesIn(set & open_)) level = std::max(level, state_[axis].level);
  return static_cast<size_t>(level);
}

void Linearizer::PreEmit(const std::vector<UopId>& roots) {
  std::vector<UopId> ready;
  Visit(roots, [&](UopId id) { ready.push_back(id); }, [](UopId) {});
  std::sort(ready.begin(), ready.end());
  for (UopId id : ready) {
    if (IsTop(id)) ForPoints(free_[id], [&] { Value(id); });
  }
}

void Linearizer::PreEmitReads(const std::vector<UopId>& roots) {
  std::vector<bool> seen(kernel_.uops.size(), false);
  std::vector<UopId> stack = roots;
  std::vector<UopId> loads;
  while (!stack.empty()) {
    const UopId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Uop& uop = kernel_.uops[id];
    if (uop.op == UOp::kLoad && written_[uop.param] && IsComputable(id) && IsTop(id)) {
      loads.push_back(id);
    }
    stack.insert(stack.end(), uop.src.begin(), uop.src.end());
  }
  std::sort(loads.begin(), loads.end());
  for (UopId id : loads) ForPoints(free_[id], [&] { Value(id); });
}

void Linearizer::CollectReduces(const std::vector<UopId>& roots) {
  std::vector<bool> seen(kernel_.uops.size(), false);
  std::vector<UopId> stack = roots;
  std::vector<UopId>& reduces = chain_.back().reduces;
  while (!stack.empty()) {
    const UopId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Uop& uop = kernel_.uops[id];
    if (uop.op == UOp::kReduce && IsComputable(id) && IsTop(id)) reduces.push_back(id);
    stack.insert(stack.end(), uop.src.begin(), uop.src.end());
  }
  std::sort(reduces.begin(), reduces.end());
}

bool Linearizer::NeedsPendingReduce(UopId id) const {
  bool pending = false;
  std::vector<bool> seen(kernel_.uops.size(), false);
  std::vector<UopId> stack = {id};
  while (!stack.empty() && !pending) {
    const UopId next = stack.back();
    stack.pop_back();
    if (seen[next]) continue;
    seen[next] = true;
    const Uop& uop = kernel_.uops[next];
    if (IsComputable(next)) {
      if (!IsTop(next)) continue;
      if (uop.op == UOp::kReduce) {
        pending = !IsKnown(next);
        continue;
      }
    }
    stack.insert(stack.end(), uop.src.begin(), uop.src.end());
  }
  return pending;
}

bool Linearizer::IsKnown(UopId id) const {
  const auto& values = chain_[LevelOf(free_[id])].values;
  return values.contains({id, PointOf(free_[id])});
}

int64_t Linearizer::LanesOf(AxisSet set) const {
  int64_t lanes = 1;
  for (AxisId axis : AxesIn(set)) {
    if (axis != apart_) lanes = std::max(lanes, kernel_.axes[axis].vector);
  }
  return lanes;
}

int64_t Linearizer::TakeApart(AxisId axis) {
  AxisState& state = state_[axis];
  const int64_t point = state.point;
  apart_ = axis;
  state.lanes = 1;
  state.points = state.count;
  state.point = 0;
  return point;
}

void Linearizer::PutTogether(AxisId axis, int64_t point) {
  AxisState& state = state_[axis];
  apart_ = kNoAxis;
  state.lanes = kernel_.axes[axis].vector;
  state.points = (state.count + state.lanes - 1) / state.lanes;
  state.point = point;
}

Reg Linearizer::Value(UopId id) {
  std::vector<UopId> pending = {id};
  while (!pending.empty() && !full_) {
    const UopId next = pending.back();
    if (IsKnown(next)) {
      pending.pop_back();
      continue;
    }
    const size_t before = pending.size();
    for (UopId need : NeedsOf(next)) {
      if (!IsKnown(need)) pending.push_back(need);
    }
    if (pending.size() > before) continue;
    pending.pop_back();
    Compute(next);
  }
  if (full_) return out_.block_begin;  // any register: nothing is kept
  return chain_[LevelOf(free_[id])].values.at({id, PointOf(free_[id])});
}

std::vector<UopId> Linearizer::NeedsOf(UopId id) const {
  const Uop& uop = kernel_.uops[id];
  std::vector<UopId> needs;
  if (StageOf(id) != nullptr) return needs;
  if (uop.op == UOp::kReduce) {
    Visit(uop.src, [&](UopId ready) { needs.push_back(ready); }, [](UopId) {});
    return needs;
  }
  const std::optional<size_t> fused = FusedOperand(uop);
  for (size_t i = 0; i < uop.src.size(); ++i) {
    if (fused == i) {
      const std::vector<UopId>& factors = kernel_.uops[uop.src[i]].src;
      needs.insert(needs.end(), factors.begin(), factors.end());
    } else {
      needs.push_back(uop.src[i]);
    }
  }
  return needs;
}

void Linearizer::Compute(UopId id) {
  const bool in_tiles = kernel_.uops[id].in_tiles;
  if (kernel_.uops[id].op == UOp::kReduce && !in_tiles) return EmitReduce(id);
  const Reg reg = in_tiles ? TileElements(id) : Emit(id);
  chain_[LevelOf(free_[id])].values[{id, PointOf(free_[id])}] = reg;
}

Reg Linearizer::Splat(Reg reg, int64_t lanes) {
  if (out_.registers[reg].lanes == lanes) return reg;
  for (const Level& level : chain_) {
    const auto found = level.splats.find({reg, lanes});
    if (found != level.splats.end()) return found->second;
  }
  LinearOp op = Op(UOp::kVectorize);
  op.a = reg;
  const Reg splat = Append(op, out_.registers[reg].dtype, lanes);
  chain_.back().splats[{reg, lanes}] = splat;
  return splat;
}

bool Linearizer::Fuses(UopId product) const {
  const Uop& uop = kernel_.uops[product];
  return options_.contract && IsProduct(uop) && !uop.staged && uses_[product] == 1 &&
         IsTop(product);
}

std::optional<size_t> Linearizer::FusedOperand(const Uop& uop) const {
  if (uop.op != UOp::kAdd || !tensor::IsFloat(uop.dtype)) return std::nullopt;
  for (size_t i = 2; i-- > 0;) {
    if (Fuses(uop.src[i])) return i;
  }
  return std::nullopt;
}

Reg Linearizer::EmitCustom(UopId id) {
  const Uop& uop = kernel_.uops[id];
  const CustomOp& custom = *FindCustomOp(uop.custom);
  const int64_t lanes = LanesOf(free_[id]);
  if (custom.linearize == nullptr) {
    LinearOp op = Op(UOp::kCustom);
    op.custom = &custom;
    op.a = Wide(uop.src[0], lanes);
    if (uop.src.size() > 1) op.b = Wide(uop.src[1], lanes);
    if (uop.src.size() > 2) op.c = Wide(uop.src[2], lanes);
    return Append(op, uop.dtype, lanes);
  }
  std::vector<Reg> operands;
  std::vector<Reg> first_lane;
  for (size_t i = 0; i < uop.src.size(); ++i) {
    const Uop& operand = kernel_.uops[uop.src[i]];
    const bool uniform = i < custom.uniform.size() && custom.uniform[i];
    operands.push_back(uniform ? Value(uop.src[i]) : Wide(uop.src[i], lanes));
    const bool counts = operand.op == UOp::kRange && LanesOf(free_[uop.src[i]]) == lanes;
    first_lane.push_back(counts ? IndexOf(Affine{0, {{operand.axis, 1}}}, 1) : kNoReg);
  }
  const std::vector<const tensor::Shape*> shapes = CustomShapes(kernel_, uop);
  return custom.linearize({static_cast<LinearCode&>(*this), uop.memory, shapes, operands,
                           first_lane, lanes, ActiveLanes(free_[id])});
}

Reg Linearizer::Emit(UopId id) {
  const Uop& uop = kernel_.uops[id];
  const int64_t lanes = LanesOf(free_[id]);
  if (const Stage* stage = StageOf(id)) return EmitStagedLoad(*stage);
  switch (uop.op) {
    case UOp::kConst: {
      LinearOp op = Op(UOp::kConst);
      op.number = uop.number;
      op.integer = uop.integer;
      return Append(op, uop.dtype, 1);
    }
    case UOp::kRange: {
      const Affine axis{0, {{uop.axis, 1}}};
      return IndexOf(axis, lanes);
    }
    case UOp::kLoad:
      return EmitLoad(id);
    case UOp::kCustom:
      return EmitCustom(id);
    case UOp::kAdd: {
      if (const std::optional<size_t> fused = FusedOperand(uop)) {
        const Uop& product = kernel_.uops[uop.src[*fused]];
        LinearOp op = Op(UOp::kMulAcc);
        op.a = Wide(product.src[0], lanes);
        op.b = Wide(product.src[1], lanes);
        op.c = Wide(uop.src[1 - *fused], lanes);
        return Append(op, uop.dtype, lanes);
      }
      [[fallthrough]];
    }
    default: {
      LinearOp op = Op(uop.op);
      if (!uop.src.empty()) op.a = Wide(uop.src[0], lanes);
      if (uop.src.size() > 1) op.b = Wide(uop.src[1], lanes);
      if (uop.src.size() > 2) op.c = Wide(uop.src[2], lanes);
      return Append(op, uop.dtype, lanes);
    }
  }
}

}  // namespace l3c::l0
