#include "layers/l0/linearize.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "layers/l0/kernel_axes.h"

namespace l3c::l0 {
namespace {

constexpr AxisId kNoAxis = UINT32_MAX;
// Reductions that share a loop may hold this many accumulators together.
constexpr int64_t kMaxSharedAccumulators = 24;

// Loops of the stores: a trie of their axes. `effects` keeps the order of the stores.
struct Nest {
  struct Effect {
    UopId store = 0;
    int child = -1;  // index into `children`; -1: the store
  };
  AxisId axis = kNoAxis;
  std::vector<Effect> effects;
  std::vector<Nest> children;
  std::vector<UopId> stores;  // of the whole subtree
};

using TermKey = std::vector<std::pair<AxisId, int64_t>>;

// A loop that is open where code is being appended, with what was computed in it so far.
struct Level {
  AxisId axis = kNoAxis;
  std::map<std::pair<UopId, int64_t>, Reg> values;  // by uop and point of its free axes
  std::map<std::pair<Reg, int64_t>, Reg> splats;    // by register and lanes
  std::map<TermKey, Reg> prefixes;                  // sums of index terms
  std::vector<UopId> reduces;                       // that will be computed at this level
};

// An open axis: the iterations base + [0, count), in `points` registers of `lanes`.
struct AxisState {
  int level = -1;  // index into the chain; -1: closed
  Reg base = kNoReg;
  int64_t base_constant = 0;
  int64_t count = 1;
  int64_t lanes = 1;
  int64_t points = 1;
  int64_t point = 0;  // where we are
};

struct Address {
  Reg reg = kNoReg;
  int64_t offset = 0;
  Reg mask = kNoReg;
};

class Linearizer {
 public:
  Linearizer(const Kernel& kernel, const LinearizeOptions& options)
      : kernel_(kernel), options_(options), free_(FreeAxes(kernel)), state_(kernel.axes.size()) {
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

  absl::StatusOr<LinearKernel> Run() {
    for (const Uop& uop : kernel_.uops) {
      if (uop.op == UOp::kWmma || (uop.op == UOp::kCustom && uop.custom != kPhilox)) {
        return absl::UnimplementedError(absl::StrCat("kernel ", kernel_.name, ": ",
                                                     uop.op == UOp::kWmma ? "WMMA" : "CUSTOM",
                                                     " is not supported by this backend"));
      }
    }
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      if (kernel_.uops[id].op == UOp::kStore) Insert(root_, id, AxesIn(free_[id]), 0);
    }
    out_.block_begin = NewReg(DType::kI64, 1);
    out_.block_end = NewReg(DType::kI64, 1);

    chain_.emplace_back();
    CollectReduces(root_.stores);
    PreEmit(root_.stores);
    LinearOp range = Op(UOp::kRange);
    range.a = out_.block_begin;
    range.b = out_.block_end;
    block_ = Append(range, DType::kI64, 1);
    chain_.emplace_back();
    EmitGridCoordinates();
    EmitEffects(root_);
    chain_.pop_back();
    Append(Op(UOp::kEnd));
    if (full_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("kernel ", kernel_.name, ": its schedule unrolls to more than ",
                       kMaxLinearOps, " operations; use smaller tiles"));
    }
    return std::move(out_);
  }

 private:
  // ---- The nest of the stores ---------------------------------------------------------------

  void Insert(Nest& nest, UopId store, const std::vector<AxisId>& path, size_t depth) {
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

  void EmitEffects(Nest& nest) {
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
        for (size_t s = i; s < end; ++s) EmitStore(nest.effects[s].store, values[s - i]);
      });
      i = end;
    }
  }

  // ---- Loops --------------------------------------------------------------------------------

  // First and last iteration of the block on each grid axis.
  void EmitGridCoordinates() {
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

  // Opens `axis`, runs `body` for whole tiles and for what remains, closes it. `roots` are what the
  // body computes: their index sums are prepared as far out as possible.
  void EmitAxis(AxisId axis, const std::vector<UopId>& roots, const std::function<void()>& body) {
    const Axis& a = kernel_.axes[axis];
    const GridRange grid = a.kind == AxisKind::kGrid ? grid_[axis] : GridRange{};
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

  void EmitStaticAxis(AxisId axis, int64_t length, Reg low, const std::vector<UopId>& roots,
                      const std::function<void()>& body) {
    const int64_t tile = kernel_.axes[axis].tile;
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

  void EmitBody(AxisId axis, Reg base, int64_t base_constant, int64_t count,
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
    body();
    chain_.pop_back();
    open_ &= ~AxisBit(axis);
    state.level = -1;
    state.point = 0;
  }

  // Runs `body` for every combination of points of the open axes in `set`, the innermost fastest.
  void ForPoints(AxisSet set, const std::function<void()>& body) {
    std::vector<AxisId> axes;
    for (AxisId axis : AxesIn(set & open_)) {
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

  // The current point of the axes in `set`, as one number.
  int64_t PointOf(AxisSet set) const {
    int64_t point = 0;
    for (AxisId axis : AxesIn(set & open_)) {
      point = point * state_[axis].points + state_[axis].point;
    }
    return point;
  }
  bool AtFirstPoint(AxisSet set) const {
    for (AxisId axis : AxesIn(set & open_)) {
      if (state_[axis].point != 0) return false;
    }
    return true;
  }

  // ---- Where a value belongs ----------------------------------------------------------------

  size_t LevelOf(AxisSet set) const {
    int level = 0;
    for (AxisId axis : AxesIn(set & open_)) level = std::max(level, state_[axis].level);
    return static_cast<size_t>(level);
  }
  bool IsTop(UopId id) const { return LevelOf(free_[id]) + 1 == chain_.size(); }
  bool IsComputable(UopId id) const { return (free_[id] & ~open_) == 0; }

  // Visits what `roots` need: stops at values that the open axes determine (and calls `ready`),
  // goes on through those that loops yet to be opened determine (and calls `later`).
  template <typename Ready, typename Later>
  void Visit(const std::vector<UopId>& roots, const Ready& ready, const Later& later) const {
    std::vector<bool> seen(kernel_.uops.size(), false);
    std::vector<UopId> stack(roots.rbegin(), roots.rend());
    while (!stack.empty()) {
      const UopId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      if (IsComputable(id) && kernel_.uops[id].op != UOp::kStore) {
        ready(id);
        continue;
      }
      later(id);
      const std::vector<UopId>& src = kernel_.uops[id].src;
      stack.insert(stack.end(), src.rbegin(), src.rend());
    }
  }

  // Computes, at all points, the values of this level that loops inside it will read.
  void PreEmit(const std::vector<UopId>& roots) {
    std::vector<UopId> ready;
    Visit(roots, [&](UopId id) { ready.push_back(id); }, [](UopId) {});
    std::sort(ready.begin(), ready.end());
    for (UopId id : ready) {
      if (IsTop(id)) ForPoints(free_[id], [&] { Value(id); });
    }
  }

  // The loads of this level, below `roots`, from parameters that are also written.
  void PreEmitReads(const std::vector<UopId>& roots) {
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

  // Every reduction below `roots` that belongs to the level just opened.
  void CollectReduces(const std::vector<UopId>& roots) {
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

  // True when `id` can be computed here without a reduction that is still to come.
  bool NeedsPendingReduce(UopId id) const {
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

  bool IsKnown(UopId id) const {
    const auto& values = chain_[LevelOf(free_[id])].values;
    return values.contains({id, PointOf(free_[id])});
  }

  // ---- Values -------------------------------------------------------------------------------

  int64_t LanesOf(AxisSet set) const {
    int64_t lanes = 1;
    for (AxisId axis : AxesIn(set)) lanes = std::max(lanes, kernel_.axes[axis].vector);
    return lanes;
  }

  // The register of `id` at the current point. What it needs at this level is computed first, off
  // an explicit stack: operands may nest a thousand deep.
  Reg Value(UopId id) {
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

  // The values that the code of `id` reads directly.
  std::vector<UopId> NeedsOf(UopId id) const {
    const Uop& uop = kernel_.uops[id];
    std::vector<UopId> needs;
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

  void Compute(UopId id) {
    if (kernel_.uops[id].op == UOp::kReduce) return EmitReduce(id);
    const Reg reg = Emit(id);
    chain_[LevelOf(free_[id])].values[{id, PointOf(free_[id])}] = reg;
  }

  // The same with `lanes` lanes.
  Reg Wide(UopId id, int64_t lanes) { return Splat(Value(id), lanes); }

  Reg Splat(Reg reg, int64_t lanes) {
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

  // A product to be fused into the op at the current level that alone reads it.
  bool Fuses(UopId product) const {
    const Uop& uop = kernel_.uops[product];
    return options_.contract && uop.op == UOp::kMul && tensor::IsFloat(uop.dtype) &&
           uses_[product] == 1 && IsTop(product);
  }

  // Which operand of a sum is a product to fuse.
  std::optional<size_t> FusedOperand(const Uop& uop) const {
    if (uop.op != UOp::kAdd || !tensor::IsFloat(uop.dtype)) return std::nullopt;
    for (size_t i = 2; i-- > 0;) {
      if (Fuses(uop.src[i])) return i;
    }
    return std::nullopt;
  }

  Reg Emit(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const int64_t lanes = LanesOf(free_[id]);
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

  // ---- Indices ------------------------------------------------------------------------------

  // Σ coefficient·base over the open axes whose base is a register, computed at the level of the
  // deepest of them.
  Reg Prefix(const Affine& affine) {
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

  Reg PrefixOf(const TermKey& terms) {
    if (terms.empty()) return kNoReg;
    for (const Level& level : chain_) {
      const auto found = level.prefixes.find(terms);
      if (found != level.prefixes.end()) return found->second;
    }
    const auto [axis, coefficient] = terms.back();
    const Reg outer = PrefixOf(TermKey(terms.begin(), terms.end() - 1));
    const Reg base = state_[axis].base;
    const Reg sum =
        outer == kNoReg && coefficient == 1 ? base : Scaled(outer, base, coefficient, 0);
    chain_.back().prefixes[terms] = sum;
    return sum;
  }

  void PrepareIndices(AxisId axis, const std::vector<UopId>& roots) {
    std::vector<bool> seen(kernel_.uops.size(), false);
    std::vector<UopId> stack(roots.rbegin(), roots.rend());
    while (!stack.empty()) {
      const UopId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      const Uop& uop = kernel_.uops[id];
      if (uop.op == UOp::kLoad || uop.op == UOp::kStore) {
        if (AxesOf(uop.index) & AxisBit(axis)) Prefix(uop.index);
        for (const Guard& guard : uop.guards) {
          if (AxesOf(guard.expression) & AxisBit(axis)) Prefix(guard.expression);
        }
      }
      stack.insert(stack.end(), uop.src.rbegin(), uop.src.rend());
    }
  }

  // The part of an affine expression that is known now: constant, points and constant bases.
  int64_t KnownPart(const Affine& affine) const {
    int64_t value = affine.constant;
    for (const auto& [axis, coefficient] : affine.terms) {
      const AxisState& state = state_[axis];
      value += coefficient * (state.base_constant + state.point * state.lanes);
    }
    return value;
  }

  int64_t LaneStride(const Affine& affine) const {
    for (const auto& [axis, coefficient] : affine.terms) {
      if (kernel_.axes[axis].vector > 1) return coefficient;
    }
    return 0;
  }

  // An affine expression as a value of `lanes` lanes.
  Reg IndexOf(const Affine& affine, int64_t lanes) {
    LinearOp op = Op(UOp::kIndex);
    op.a = Prefix(affine);
    op.offset = KnownPart(affine);
    op.stride = lanes > 1 ? LaneStride(affine) : 0;
    if (op.a != kNoReg && op.offset == 0 && lanes == 1) return op.a;
    return Append(op, DType::kI64, lanes);
  }

  // How many lanes of a register over `set` stand for iterations; 0 for all of them.
  uint16_t ActiveLanes(AxisSet set) const {
    for (AxisId axis : AxesIn(set & open_)) {
      const AxisState& state = state_[axis];
      if (state.lanes == 1) continue;
      const int64_t left = state.count - state.point * state.lanes;
      return left < state.lanes ? static_cast<uint16_t>(left) : 0;
    }
    return 0;
  }

  // low <= value < high with one unsigned comparison.
  Reg InRange(Reg value, int64_t low, int64_t high, int64_t lanes) {
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

  Reg And(Reg x, Reg y) {
    if (x == kNoReg) return y;
    if (y == kNoReg) return x;
    const int64_t lanes = std::max(out_.registers[x].lanes, out_.registers[y].lanes);
    return Binary(UOp::kMul, Splat(x, lanes), Splat(y, lanes), DType::kBool, lanes);
  }

  Address AddressOf(UopId id) {
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

  Reg EmitLoad(UopId id) {
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

  // The tiled axis along which a load with strided lanes is contiguous, if it has as many points
  // around the current one as there are lanes.
  std::optional<AxisId> TransposedAxis(const Uop& uop, int64_t lanes) const {
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

  // Loads one row for each lane, along `axis`, and computes `id` at all points of the block.
  Reg EmitTransposed(UopId id, AxisId axis, int64_t lanes) {
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

  Reg AppendLoad(const Uop& uop, const Address& address, int64_t lanes, uint16_t active) {
    LinearOp op = Op(UOp::kLoad);
    op.param = uop.param;
    op.a = address.reg;
    op.offset = address.offset;
    op.c = address.mask;
    op.active = active;
    return Append(op, uop.dtype, lanes);
  }

  // ---- Stores -------------------------------------------------------------------------------

  Reg PrepareStore(UopId id) {
    const Uop& uop = kernel_.uops[id];
    const int64_t lanes = LanesOf(free_[id]);
    if (IsDynamic(uop)) Value(uop.src.back());
    if (AddsProduct(uop)) {
      for (UopId factor : kernel_.uops[uop.src[0]].src) Wide(factor, lanes);
      return kNoReg;
    }
    return Wide(uop.src[0], lanes);
  }

  bool AddsProduct(const Uop& store) const { return store.accumulate && Fuses(store.src[0]); }

  void EmitStore(UopId id, Reg value) {
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

  // ---- Reductions ---------------------------------------------------------------------------

  struct Reduction {
    UopId id = 0;
    int64_t lanes = 1;
    int64_t partials = 1;
    std::map<int64_t, std::vector<Reg>> accumulators;  // by point of the free axes
  };

  static void SetNeutral(LinearOp& op, Fold fold, DType dtype) {
    op.number = 0;
    op.integer = 0;
    if (fold == Fold::kAdd) return;
    op.number = -std::numeric_limits<double>::infinity();
    if (dtype == DType::kI32) op.integer = std::numeric_limits<int32_t>::min();
    if (dtype == DType::kI64) op.integer = std::numeric_limits<int64_t>::min();
  }

  int64_t PointsIn(AxisSet set) const {
    int64_t points = 1;
    for (AxisId axis : AxesIn(set & open_)) points *= state_[axis].points;
    return points;
  }

  Reduction MakeReduction(UopId id) const {
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

  // Computes `id` at all points, together with the reductions that can share its loops.
  void EmitReduce(UopId id) {
    const std::vector<AxisId>& axes = kernel_.uops[id].axes;
    PreEmit(kernel_.uops[id].src);
    std::vector<Reduction> group = {MakeReduction(id)};
    int64_t held = group[0].partials * PointsIn(free_[id]);
    const std::vector<UopId> siblings = chain_.back().reduces;
    for (UopId other : siblings) {
      const Uop& uop = kernel_.uops[other];
      if (other == id || uop.axes != axes || IsKnown(other) || NeedsPendingReduce(uop.src[0])) {
        continue;
      }
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
  }

  void ReduceLoops(std::vector<Reduction>& group, const std::vector<UopId>& operands,
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
    ForPoints(bound, [&] {
      ForPoints(all_free, [&] {
        for (Reduction& reduction : group) {
          if (AtFirstPoint(all_free & ~free_[reduction.id])) Accumulate(reduction, bound);
        }
      });
    });
  }

  void Accumulate(Reduction& reduction, AxisSet bound) {
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

  // Folds the partial accumulators pairwise, then the lanes.
  void Finish(Reduction& reduction) {
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
      if (lanes_bound) {
        LinearOp fold = Op(UOp::kReduce);
        fold.fold = uop.fold;
        fold.a = result;
        result = Append(fold, uop.dtype, 1);
      }
      chain_.back().values[{reduction.id, point}] = result;
    });
  }

  // ---- Output -------------------------------------------------------------------------------

  static LinearOp Op(UOp op) {
    LinearOp linear;
    linear.op = op;
    return linear;
  }

  Reg NewReg(DType dtype, int64_t lanes) {
    out_.registers.push_back({dtype, static_cast<uint16_t>(lanes), false});
    return static_cast<Reg>(out_.registers.size() - 1);
  }

  void Append(const LinearOp& op) {
    if (out_.ops.size() >= kMaxLinearOps) {
      full_ = true;
      return;
    }
    out_.ops.push_back(op);
  }

  Reg Append(LinearOp op, DType dtype, int64_t lanes) {
    op.dst = NewReg(dtype, lanes);
    Append(op);
    return op.dst;
  }

  void Assign(LinearOp op, Reg dst) {
    op.dst = dst;
    out_.registers[dst].reassigned = true;
    Append(op);
  }

  Reg Unary(UOp op, Reg a, DType dtype, int64_t lanes) {
    LinearOp linear = Op(op);
    linear.a = a;
    return Append(linear, dtype, lanes);
  }

  Reg Binary(UOp op, Reg a, Reg b, DType dtype, int64_t lanes) {
    LinearOp linear = Op(op);
    linear.a = a;
    linear.b = b;
    return Append(linear, dtype, lanes);
  }

  // a + scale·b + offset
  Reg Scaled(Reg a, Reg b, int64_t scale, int64_t offset) {
    LinearOp op = Op(UOp::kIndex);
    op.a = a;
    op.b = b;
    op.scale = scale;
    op.offset = offset;
    return Append(op, DType::kI64, 1);
  }

  Reg IntConst(int64_t value) {
    LinearOp op = Op(UOp::kConst);
    op.integer = value;
    return Append(op, DType::kI64, 1);
  }

  Reg BoolConst(bool value) {
    LinearOp op = Op(UOp::kConst);
    op.integer = value ? 1 : 0;
    return Append(op, DType::kBool, 1);
  }

  struct GridRange {
    Reg low = kNoReg;    // kNoReg: starts at 0
    Reg high = kNoReg;   // when the last block is shorter
    int64_t length = 0;  // -1: the last block is shorter
  };

  const Kernel& kernel_;
  const LinearizeOptions options_;
  const std::vector<AxisSet> free_;
  std::vector<int> uses_;
  std::vector<bool> written_;
  Nest root_;
  LinearKernel out_;
  std::vector<Level> chain_;
  std::vector<AxisState> state_;
  std::vector<GridRange> grid_;
  AxisSet open_ = 0;
  Reg block_ = kNoReg;
  bool full_ = false;
};

}  // namespace

absl::StatusOr<LinearKernel> Linearize(const Kernel& kernel, const LinearizeOptions& options) {
  return Linearizer(kernel, options).Run();
}

}  // namespace l3c::l0
