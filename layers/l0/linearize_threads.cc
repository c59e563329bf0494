#include <algorithm>
#include <set>
#include <vector>

#include "layers/l0/gpu_launch.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {

void Linearizer::PrepareThreads() {
  out_.launch = kernel_.launch;
  out_.thread_x = NewReg(DType::kI64, 1);
  out_.thread_y = NewReg(DType::kI64, 1);
}

bool Linearizer::HasIdleBlocks() const {
  return NumBlocks(kernel_) != kernel_.launch->grid * kernel_.launch->z;
}

void Linearizer::OpenBlock() {
  if (!HasIdleBlocks()) return;
  If(Binary(UOp::kCmpLt, out_.block_begin, IntConst(NumBlocks(kernel_)), DType::kBool, 1));
}

void Linearizer::CloseBlock() {
  if (HasIdleBlocks()) Append(Op(UOp::kEndIf));
}

Reg Linearizer::ThreadAlong(Across across) const {
  return across == Across::kX ? out_.thread_x : out_.thread_y;
}

void Linearizer::If(Reg condition) {
  LinearOp op = Op(UOp::kIf);
  op.a = condition;
  Append(op);
}

Reg Linearizer::Equals(Reg a, Reg b) {
  const Reg differs = Binary(UOp::kCmpNe, a, b, DType::kBool, 1);
  return Binary(UOp::kCmpNe, differs, BoolConst(true), DType::kBool, 1);
}

void Linearizer::EmitDealtAxis(AxisId axis, const GridRange& grid, const std::vector<UopId>& roots,
                               const std::function<void()>& body) {
  const Axis& a = kernel_.axes[axis];
  const int64_t threads = ThreadsAlong(*kernel_.launch, a.across);
  const int64_t length = grid.low == kNoReg ? a.extent : grid.length;
  EmitDealtTiles(axis, grid.low, grid.high, length, roots, body);
  if (length >= 0) {
    const int64_t whole = length / a.tile * a.tile;
    if (whole == length) return;
    return EmitDealtRest(axis, IntConst(whole / a.tile % threads), grid.low, whole, length - whole,
                         kNoReg, roots, body);
  }
  std::set<int64_t> rests = {a.block % a.tile, (a.extent % a.block) % a.tile};
  rests.erase(0);
  if (rests.empty()) return;
  const Reg negated = Unary(UOp::kNeg, grid.low, DType::kI64, 1);
  const Reg iterations = Binary(UOp::kAdd, grid.high, negated, DType::kI64, 1);
  const Reg rest = Binary(UOp::kMod, iterations, IntConst(a.tile), DType::kI64, 1);
  LinearOp tiles = Op(UOp::kIndex);
  tiles.a = iterations;
  tiles.divide = a.tile;
  const Reg turn =
      Binary(UOp::kMod, Append(tiles, DType::kI64, 1), IntConst(threads), DType::kI64, 1);
  for (int64_t points : rests) {
    const Reg base = Scaled(grid.high, kNoReg, 0, -points);
    EmitDealtRest(axis, turn, base, 0, points, Equals(rest, IntConst(points)), roots, body);
  }
}

void Linearizer::EmitDealtTiles(AxisId axis, Reg low, Reg high, int64_t length,
                                const std::vector<UopId>& roots,
                                const std::function<void()>& body) {
  const Axis& a = kernel_.axes[axis];
  const int64_t threads = ThreadsAlong(*kernel_.launch, a.across);
  const int64_t tiles = length / a.tile;
  if (length >= 0 ? tiles == 0 : a.block < a.tile) return;
  const Reg thread = ThreadAlong(a.across);
  const Reg first = low == kNoReg && a.tile == 1 ? thread : Scaled(low, thread, a.tile, 0);
  if (length >= 0 && tiles <= threads) {  // at most one for each thread
    if (tiles < threads) If(Binary(UOp::kCmpLt, thread, IntConst(tiles), DType::kBool, 1));
    EmitBody(axis, first, 0, a.tile, roots, body);
    if (tiles < threads) Append(Op(UOp::kEndIf));
    return;
  }
  LinearOp range = Op(UOp::kRange);
  range.a = first;
  range.step = threads * a.tile;
  if (length < 0) {
    range.b = a.tile > 1 ? Scaled(high, kNoReg, 0, 1 - a.tile) : high;
  } else if (low == kNoReg) {
    range.high = tiles * a.tile;
  } else {
    range.b = Scaled(low, kNoReg, 0, tiles * a.tile);
  }
  const Reg base = Append(range, DType::kI64, 1);
  EmitBody(axis, base, 0, a.tile, roots, body);
  Append(Op(UOp::kEnd));
}

void Linearizer::EmitDealtRest(AxisId axis, Reg tiles, Reg base, int64_t base_constant,
                               int64_t points, Reg condition, const std::vector<UopId>& roots,
                               const std::function<void()>& body) {
  const Reg turn = Equals(ThreadAlong(kernel_.axes[axis].across), tiles);
  If(condition == kNoReg ? turn : And(condition, turn));
  EmitBody(axis, base, base_constant, points, roots, body);
  Append(Op(UOp::kEndIf));
}

bool Linearizer::StoresOnce(UopId store, Across across) const {
  if (!threads_ || ThreadsAlong(*kernel_.launch, across) == 1) return false;
  for (AxisId axis : AxesIn(free_[store])) {
    if (kernel_.axes[axis].across == across) return false;
  }
  return true;
}

void Linearizer::OpenStores(UopId store) {
  Reg condition = kNoReg;
  for (Across across : {Across::kX, Across::kY}) {
    if (!StoresOnce(store, across)) continue;
    condition = And(condition, Equals(ThreadAlong(across), IntConst(0)));
  }
  if (condition == kNoReg) return;
  If(condition);
  chain_.emplace_back();  // what is computed for the stores is not there for others
}

void Linearizer::CloseStores(UopId store) {
  if (!StoresOnce(store, Across::kX) && !StoresOnce(store, Across::kY)) return;
  chain_.pop_back();
  Append(Op(UOp::kEndIf));
}

bool Linearizer::FoldsAcross(const std::vector<AxisId>& axes) const {
  if (!threads_ || kernel_.launch->x == 1) return false;
  return std::any_of(axes.begin(), axes.end(),
                     [&](AxisId axis) { return kernel_.axes[axis].across == Across::kX; });
}

}  // namespace l3c::l0
