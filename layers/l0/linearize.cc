#include "layers/l0/linearize.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {

Linearizer::Linearizer(const Kernel& kernel, const LinearizeOptions& options)
    : kernel_(kernel),
      options_(options),
      threads_(options.threads && kernel.launch),
      free_(FreeAxes(kernel)),
      state_(kernel.axes.size()) {
  out_.name = kernel.name;
  out_.params = kernel.params;
  uses_.resize(kernel.uops.size());
  for (const Uop& uop : kernel.uops) {
    for (UopId operand : uop.src) ++uses_[operand];
  }
  written_.resize(kernel.params.size());
  for (const Uop& uop : kernel.uops) {
    if (uop.op == UOp::kStore) written_[uop.param] = true;
  }
}

absl::StatusOr<LinearKernel> Linearizer::Run() {
  for (const Uop& uop : kernel_.uops) {
    if (uop.op == UOp::kWmma) {
      return absl::UnimplementedError(
          absl::StrCat("kernel ", kernel_.name, ": WMMA is not supported by this backend"));
    }
  }
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    if (kernel_.uops[id].op == UOp::kStore) Insert(root_, id, AxesIn(free_[id]), 0);
  }
  if (!threads_) PrepareStages();
  out_.block_begin = NewReg(DType::kI64, 1);
  out_.block_end = NewReg(DType::kI64, 1);

  if (threads_) PrepareThreads();
  chain_.emplace_back();
  CollectReduces(root_.stores);
  PreEmit(root_.stores);
  if (threads_) {
    OpenBlock();
    block_ = out_.block_begin;
  } else {
    LinearOp range = Op(UOp::kRange);
    range.a = out_.block_begin;
    range.b = out_.block_end;
    block_ = Append(range, DType::kI64, 1);
  }
  chain_.emplace_back();
  EmitGridCoordinates();
  EmitBlockStages();
  EmitEffects(root_);
  chain_.pop_back();
  if (threads_) {
    CloseBlock();
  } else {
    Append(Op(UOp::kEnd));
  }
  if (full_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("kernel ", kernel_.name, ": its schedule unrolls to more than ", kMaxLinearOps,
                     " operations; use smaller tiles"));
  }
  return std::move(out_);
}

void Linearizer::Insert(Nest& nest, UopId store, const std::vector<AxisId>& path, size_t depth) {
  nest.stores.push_back(store);
  if (depth == path.size()) {
    nest.effects.push_back({store, -1});
    return;
  }
  // Moving a store ahead of another to the same parameter would change what is left there.
  int child = -1;
  for (size_t i = nest.effects.size(); i-- > 0 && child < 0;) {
    const Nest::Effect& effect = nest.effects[i];
    if (effect.child >= 0 && nest.children[effect.child].axis == path[depth]) {
      child = effect.child;
      break;
    }
    const std::vector<UopId> passed =
        effect.child >= 0 ? nest.children[effect.child].stores : std::vector<UopId>{effect.store};
    bool blocked = false;
    for (UopId other : passed) blocked |= kernel_.uops[other].param == kernel_.uops[store].param;
    if (blocked) break;
  }
  if (child < 0) {
    child = static_cast<int>(nest.children.size());
    nest.children.emplace_back();
    nest.children.back().axis = path[depth];
    nest.effects.push_back({0, child});
  }
  Insert(nest.children[child], store, path, depth + 1);
}

void Linearizer::EmitEffects(Nest& nest) {
  if (!nest.children.empty()) {
    // Everything read here is read before anything is stored here or further in.
    for (const Nest::Effect& effect : nest.effects) {
      if (effect.child < 0) PreEmitReads({effect.store});
    }
    for (Nest& child : nest.children) PreEmit(child.stores);
  }
  for (size_t i = 0; i < nest.effects.size();) {
    if (nest.effects[i].child >= 0) {
      Nest& child = nest.children[nest.effects[i].child];
      EmitAxis(child.axis, child.stores, [&] { EmitEffects(child); });
      ++i;
      continue;
    }
    size_t end = i;
    while (end < nest.effects.size() && nest.effects[end].child < 0) ++end;
    ForPoints(free_[nest.effects[i].store], [&] {
      std::vector<Reg> values;
      for (size_t s = i; s < end; ++s) values.push_back(PrepareStore(nest.effects[s].store));
      OpenStores(nest.effects[i].store);
      for (size_t s = i; s < end; ++s) EmitStore(nest.effects[s].store, values[s - i]);
      CloseStores(nest.effects[i].store);
    });
    i = end;
  }
}

void Linearizer::EmitGridCoordinates() {
  grid_.assign(kernel_.axes.size(), {});
  int64_t inner = 1;
  for (AxisId axis = static_cast<AxisId>(kernel_.axes.size()); axis-- > 0;) {
    const Axis& a = kernel_.axes[axis];
    if (a.kind != AxisKind::kGrid) continue;
    const int64_t blocks = (a.extent + a.block - 1) / a.block;
    GridRange& range = grid_[axis];
    if (blocks <= 1) {
      range.length = a.extent;
      continue;
    }
    Reg coordinate = block_;
    if (inner > 1) {
      LinearOp divide = Op(UOp::kIndex);
      divide.a = block_;
      divide.divide = inner;
      coordinate = Append(divide, DType::kI64, 1);
    }
    if (NumBlocks(kernel_) > blocks * inner) {
      coordinate = Binary(UOp::kMod, coordinate, IntConst(blocks), DType::kI64, 1);
    }
    range.low = Scaled(kNoReg, coordinate, a.block, 0);
    if (a.extent % a.block == 0) {
      range.length = a.block;
    } else {
      range.length = -1;
      const Reg end = Scaled(range.low, kNoReg, 0, a.block);
      const Reg extent = IntConst(a.extent);
      LinearOp minimum = Op(UOp::kWhere);
      minimum.a = Binary(UOp::kCmpLt, end, extent, DType::kBool, 1);
      minimum.b = end;
      minimum.c = extent;
      range.high = Append(minimum, DType::kI64, 1);
    }
    inner *= blocks;
  }
}

void Linearizer::EmitAxis(AxisId axis, const std::vector<UopId>& roots,
                          const std::function<void()>& body) {
  const Axis& a = kernel_.axes[axis];
  const GridRange grid = a.kind == AxisKind::kGrid ? grid_[axis] : GridRange{};
  if (threads_ && a.across != Across::kNone) return EmitDealtAxis(axis, grid, roots, body);
  if (grid.low == kNoReg) return EmitStaticAxis(axis, a.extent, kNoReg, roots, body);
  if (grid.length >= 0) return EmitStaticAxis(axis, grid.length, grid.low, roots, body);

  if (a.block >= a.tile) {
    LinearOp range = Op(UOp::kRange);
    range.a = grid.low;
    range.b = a.tile > 1 ? Scaled(grid.high, kNoReg, 0, 1 - a.tile) : grid.high;
    range.step = a.tile;
    const Reg base = Append(range, DType::kI64, 1);
    EmitBody(axis, base, 0, a.tile, roots, body);
    Append(Op(UOp::kEnd));
  }
  std::set<int64_t> rests = {a.block % a.tile, (a.extent % a.block) % a.tile};
  rests.erase(0);
  if (rests.empty()) return;
  const Reg length =
      Binary(UOp::kAdd, grid.high, Unary(UOp::kNeg, grid.low, DType::kI64, 1), DType::kI64, 1);
  const Reg rest = Binary(UOp::kMod, length, IntConst(a.tile), DType::kI64, 1);
  for (int64_t points : rests) {
    const Reg differs = Binary(UOp::kCmpNe, rest, IntConst(points), DType::kBool, 1);
    LinearOp condition = Op(UOp::kIf);
    condition.a = Binary(UOp::kCmpNe, differs, BoolConst(true), DType::kBool, 1);
    Append(condition);
    const Reg base = Scaled(grid.high, kNoReg, 0, -points);
    EmitBody(axis, base, 0, points, roots, body);
    Append(Op(UOp::kEndIf));
  }
}

void Linearizer::EmitStaticAxis(AxisId axis, int64_t length, Reg low,
                                const std::vector<UopId>& roots,
                                const std::function<void()>& body) {
  const int64_t tile = TileOf(axis);
  const int64_t whole = length / tile * tile;
  if (whole == tile) {
    EmitBody(axis, low, 0, tile, roots, body);
  } else if (whole > 0) {
    LinearOp range = Op(UOp::kRange);
    range.step = tile;
    if (low == kNoReg) {
      range.low = 0;
      range.high = whole;
    } else {
      range.a = low;
      range.b = Scaled(low, kNoReg, 0, whole);
    }
    const Reg base = Append(range, DType::kI64, 1);
    EmitBody(axis, base, 0, tile, roots, body);
    Append(Op(UOp::kEnd));
  }
  if (whole < length) EmitBody(axis, low, whole, length - whole, roots, body);
}

void Linearizer::EmitBody(AxisId axis, Reg base, int64_t base_constant, int64_t count,
                          const std::vector<UopId>& roots, const std::function<void()>& body) {
  if (full_) return;
  AxisState& state = state_[axis];
  state.level = static_cast<int>(chain_.size());
  state.base = base;
  state.base_constant = base_constant;
  state.count = count;
  state.lanes = kernel_.axes[axis].vector;
  state.points = (count + state.lanes - 1) / state.lanes;
  state.point = 0;
  open_ |= AxisBit(axis);
  chain_.emplace_back();
  chain_.back().axis = axis;
  CollectReduces(roots);
  PrepareIndices(axis, roots);
  EmitTileStages(axis, roots);
  body();
  chain_.pop_back();
  open_ &= ~AxisBit(axis);
  state.level = -1;
  state.point = 0;
}

void Linearizer::ForPoints(AxisSet set, const std::function<void()>& body) {
  ForPoints(AxesIn(set & open_), body);
}

void Linearizer::ForTile(AxisSet set, const std::function<void()>& body) {
  std::vector<AxisId> axes = AxesIn(set & open_);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](AxisId a, AxisId b) { return state_[a].points > state_[b].points; });
  ForPoints(axes, body);
}

void Linearizer::ForPoints(const std::vector<AxisId>& nest, const std::function<void()>& body) {
  std::vector<AxisId> axes;
  for (AxisId axis : nest) {
    if (state_[axis].points > 1) axes.push_back(axis);
  }
  std::vector<int64_t> saved;
  for (AxisId axis : axes) {
    saved.push_back(state_[axis].point);
    state_[axis].point = 0;
  }
  for (bool more = !full_; more;) {
    body();
    more = false;
    if (full_) break;
    for (size_t i = axes.size(); i-- > 0;) {
      AxisState& state = state_[axes[i]];
      if (++state.point < state.points) {
        more = true;
        break;
      }
      state.point = 0;
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) state_[axes[i]].point = saved[i];
}

int64_t Linearizer::PointOf(AxisSet set) const {
  int64_t point = 0;
  for (AxisId axis : AxesIn(set & open_)) {
    point = point * state_[axis].points + state_[axis].point;
  }
  return point;
}

bool Linearizer::AtFirstPoint(AxisSet set) const {
  for (AxisId axis : AxesIn(set & open_)) {
    if (state_[axis].point != 0) return false;
  }
  return true;
}

absl::StatusOr<LinearKernel> Linearize(const Kernel& kernel, const LinearizeOptions& options) {
  return Linearizer(kernel, options).Run();
}

}  // namespace l3c::l0
