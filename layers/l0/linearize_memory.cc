#include <algorithm>
#include <optional>
#include <vector>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {

Reg Linearizer::Prefix(const Affine& affine) {
  TermKey terms;
  for (const auto& [axis, coefficient] : affine.terms) {
    if (state_[axis].level >= 0 && state_[axis].base != kNoReg) {
      terms.emplace_back(axis, coefficient);
    }
  }
  std::sort(terms.begin(), terms.end(), [&](const auto& x, const auto& y) {
    return state_[x.first].level < state_[y.first].level;
  });
  return PrefixOf(terms);
}

Reg Linearizer::PrefixOf(const TermKey& terms) {
  if (terms.empty()) return kNoReg;
  for (const Level& level : chain_) {
    const auto found = level.prefixes.find(terms);
    if (found != level.prefixes.end()) return found->second;
  }
  const auto [axis, coefficient] = terms.back();
  const Reg outer = PrefixOf(TermKey(terms.begin(), terms.end() - 1));
  const Reg base = state_[axis].base;
  const Reg sum = outer == kNoReg && coefficient == 1 ? base : Scaled(outer, base, coefficient, 0);
  chain_.back().prefixes[terms] = sum;
  return sum;
}

void Linearizer::PrepareIndices(AxisId axis, const std::vector<UopId>& roots) {
  std::vector<bool> seen(kernel_.uops.size(), false);
  std::vector<UopId> stack(roots.rbegin(), roots.rend());
  while (!stack.empty()) {
    const UopId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Uop& uop = kernel_.uops[id];
    if (const Stage* stage = StageOf(id)) {
      if (CoefficientOf(stage->index, axis) != 0) Prefix(stage->index);
      continue;
    }
    if (uop.op == UOp::kLoad || uop.op == UOp::kStore) {
      if (AxesOf(uop.index) & AxisBit(axis)) Prefix(uop.index);
      for (const Guard& guard : uop.guards) {
        if (AxesOf(guard.expression) & AxisBit(axis)) Prefix(guard.expression);
      }
    }
    stack.insert(stack.end(), uop.src.rbegin(), uop.src.rend());
  }
}

int64_t Linearizer::KnownPart(const Affine& affine) const {
  int64_t value = affine.constant;
  for (const auto& [axis, coefficient] : affine.terms) {
    const AxisState& state = state_[axis];
    value += coefficient * (state.base_constant + state.point * state.lanes);
  }
  return value;
}

int64_t Linearizer::LaneStride(const Affine& affine) const {
  for (const auto& [axis, coefficient] : affine.terms) {
    if (axis != apart_ && kernel_.axes[axis].vector > 1) return coefficient;
  }
  return 0;
}

Reg Linearizer::IndexOf(const Affine& affine, int64_t lanes) {
  LinearOp op = Op(UOp::kIndex);
  op.a = Prefix(affine);
  op.offset = KnownPart(affine);
  op.stride = lanes > 1 ? LaneStride(affine) : 0;
  if (op.a != kNoReg && op.offset == 0 && lanes == 1) return op.a;
  return Append(op, DType::kI64, lanes);
}

uint16_t Linearizer::ActiveLanes(AxisSet set) const {
  for (AxisId axis : AxesIn(set & open_)) {
    const AxisState& state = state_[axis];
    if (state.lanes == 1) continue;
    const int64_t left = state.count - state.point * state.lanes;
    return left < state.lanes ? static_cast<uint16_t>(left) : 0;
  }
  return 0;
}

Reg Linearizer::InRange(Reg value, int64_t low, int64_t high, int64_t lanes) {
  if (low != 0) {
    LinearOp op = Op(UOp::kIndex);
    op.a = value;
    op.offset = -low;
    value = Append(op, DType::kI64, lanes);
  }
  LinearOp bits = Op(UOp::kBitcast);
  bits.a = value;
  const Reg distance = Append(bits, DType::kU64, lanes);
  LinearOp limit = Op(UOp::kConst);
  limit.integer = std::max<int64_t>(high - low, 0);
  return Binary(UOp::kCmpLt, distance, Append(limit, DType::kU64, lanes), DType::kBool, lanes);
}

Reg Linearizer::And(Reg x, Reg y) {
  if (x == kNoReg) return y;
  if (y == kNoReg) return x;
  const int64_t lanes = std::max(out_.registers[x].lanes, out_.registers[y].lanes);
  return Binary(UOp::kMul, Splat(x, lanes), Splat(y, lanes), DType::kBool, lanes);
}

Address Linearizer::AddressOf(UopId id) {
  const Uop& uop = kernel_.uops[id];
  const int64_t lanes = LanesOf(free_[id]);
  Address address;
  for (const Guard& guard : uop.guards) {
    const Interval range = Bounds(guard.expression, kernel_.axes);
    if (range.fits && range.low >= guard.low && range.high < guard.high) continue;
    const int64_t guard_lanes = LanesOf(AxesOf(guard.expression));
    address.mask = And(address.mask, InRange(IndexOf(guard.expression, guard_lanes), guard.low,
                                             guard.high, guard_lanes));
  }
  const int64_t stride = lanes > 1 ? LaneStride(uop.index) : 0;
  Reg dynamic = kNoReg;
  int64_t dynamic_lanes = 1;
  if (IsDynamic(uop)) {
    dynamic = Value(uop.src.back());
    dynamic_lanes = out_.registers[dynamic].lanes;
    if (out_.registers[dynamic].dtype != DType::kI64) {
      LinearOp cast = Op(UOp::kCast);
      cast.a = dynamic;
      dynamic = Append(cast, DType::kI64, dynamic_lanes);
    }
    address.mask = And(address.mask, InRange(dynamic, 0, uop.dynamic_extent, dynamic_lanes));
  }
  const Reg prefix = Prefix(uop.index);
  const bool each_lane = lanes > 1 && (stride != 1 || dynamic_lanes > 1);
  if (!each_lane && dynamic == kNoReg) {
    address.reg = prefix;
    address.offset = KnownPart(uop.index);
    return address;
  }
  LinearOp op = Op(UOp::kIndex);
  op.a = prefix;
  op.b = dynamic;
  op.scale = dynamic == kNoReg ? 0 : uop.dynamic_stride;
  op.offset = KnownPart(uop.index);
  op.stride = each_lane ? stride : 0;
  address.reg = Append(op, DType::kI64, each_lane ? lanes : 1);
  return address;
}

Reg Linearizer::EmitLoad(UopId id) {
  const Uop& uop = kernel_.uops[id];
  const int64_t lanes = LanesOf(free_[id]);
  if (tensor::NumElements(kernel_.params[uop.param].shape) == 0) {
    return Append(Op(UOp::kConst), uop.dtype, lanes);
  }
  if (const std::optional<AxisId> axis = TransposedAxis(uop, lanes)) {
    return EmitTransposed(id, *axis, lanes);
  }
  return AppendLoad(uop, AddressOf(id), lanes, ActiveLanes(free_[id]));
}

std::optional<AxisId> Linearizer::TransposedAxis(const Uop& uop, int64_t lanes) const {
  if (lanes == 1 || IsDynamic(uop) || !uop.guards.empty() || LaneStride(uop.index) == 1) {
    return std::nullopt;
  }
  for (const auto& [axis, coefficient] : uop.index.terms) {
    const AxisState& state = state_[axis];
    if (coefficient != 1 || state.lanes != 1) continue;
    if (state.level < 0 || state.point / lanes * lanes + lanes > state.points) continue;
    return axis;
  }
  return std::nullopt;
}

Reg Linearizer::EmitTransposed(UopId id, AxisId axis, int64_t lanes) {
  const Uop& uop = kernel_.uops[id];
  AxisState& state = state_[axis];
  const int64_t at = state.point;
  state.point = at / lanes * lanes;
  const Reg prefix = Prefix(uop.index);
  const int64_t offset = KnownPart(uop.index);
  const int64_t stride = LaneStride(uop.index);
  const uint16_t active = ActiveLanes(free_[id]);
  std::vector<Reg> rows;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    LinearOp row = Op(active != 0 && lane >= active ? UOp::kConst : UOp::kLoad);
    row.param = uop.param;
    if (row.op == UOp::kLoad) row.a = prefix;
    row.offset = offset + lane * stride;
    rows.push_back(Append(row, uop.dtype, lanes));
  }
  auto& values = chain_[LevelOf(free_[id])].values;
  for (int64_t column = 0; column < lanes; ++column, ++state.point) {
    LinearOp gep = Op(UOp::kGep);
    gep.a = rows[0];
    gep.integer = column;
    values[{id, PointOf(free_[id])}] = Append(gep, uop.dtype, lanes);
  }
  state.point = at;
  return values.at({id, PointOf(free_[id])});
}

Reg Linearizer::AppendLoad(const Uop& uop, const Address& address, int64_t lanes, uint16_t active) {
  LinearOp op = Op(UOp::kLoad);
  op.param = uop.param;
  op.a = address.reg;
  op.offset = address.offset;
  op.c = address.mask;
  op.active = active;
  return Append(op, uop.dtype, lanes);
}

Reg Linearizer::PrepareStore(UopId id) {
  const Uop& uop = kernel_.uops[id];
  const int64_t lanes = LanesOf(free_[id]);
  if (IsDynamic(uop)) Value(uop.src.back());
  if (AddsProduct(uop)) {
    for (UopId factor : kernel_.uops[uop.src[0]].src) Wide(factor, lanes);
    return kNoReg;
  }
  return Wide(uop.src[0], lanes);
}

void Linearizer::EmitStore(UopId id, Reg value) {
  const Uop& uop = kernel_.uops[id];
  const int64_t lanes = LanesOf(free_[id]);
  if (tensor::NumElements(kernel_.params[uop.param].shape) == 0) return;
  const Address address = AddressOf(id);
  const uint16_t active = ActiveLanes(free_[id]);
  const DType dtype = kernel_.params[uop.param].dtype;
  if (uop.accumulate) {
    Uop read = uop;
    read.dtype = dtype;
    const Reg old = AppendLoad(read, address, lanes, active);
    if (AddsProduct(uop)) {
      const Uop& product = kernel_.uops[uop.src[0]];
      LinearOp sum = Op(UOp::kMulAcc);
      sum.a = Wide(product.src[0], lanes);
      sum.b = Wide(product.src[1], lanes);
      sum.c = old;
      value = Append(sum, dtype, lanes);
    } else {
      value = Binary(UOp::kAdd, old, value, dtype, lanes);
    }
  }
  LinearOp op = Op(UOp::kStore);
  op.param = uop.param;
  op.a = address.reg;
  op.b = value;
  op.offset = address.offset;
  op.c = address.mask;
  op.active = active;
  Append(op);
}

}  // namespace l3c::l0
