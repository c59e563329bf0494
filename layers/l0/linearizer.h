// How a kernel becomes its linear form: what Linearize keeps while it walks the stores' loops.
//
//   linearize.cc           the nest of the stores, and its loops
//   linearize_values.cc    at which loop a value belongs, and its register
//   linearize_memory.cc    indices, loads, stores
//   linearize_reduce.cc    reductions
//   linearize_fetch.cc     what they read is asked for ahead
//   linearize_staging.cc   staged values
//   linearize_tiles.cc     sums that are made in tiles
//   linearize_threads.cc   what the threads of a GPU share
//   linear_code.h          the list that is appended to
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "layers/l0/kernel.h"
#include "layers/l0/kernel_axes.h"
#include "layers/l0/linear_code.h"
#include "layers/l0/linearize.h"
#include "layers/l0/staging.h"
#include "layers/l0/tile_product.h"

namespace l3c::l0 {

inline constexpr AxisId kNoAxis = UINT32_MAX;

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
  std::set<UopId> tiles;                            // reductions whose tiles are in memory
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

class Linearizer : private LinearCode {
 public:
  Linearizer(const Kernel& kernel, const LinearizeOptions& options);
  absl::StatusOr<LinearKernel> Run();

 private:
  // ---- The nest of the stores ------------------------------------------------------------------

  void Insert(Nest& nest, UopId store, const std::vector<AxisId>& path, size_t depth);
  void EmitEffects(Nest& nest);

  // ---- Loops -----------------------------------------------------------------------------------

  // First and last iteration of the block on each grid axis.
  void EmitGridCoordinates();
  // Opens `axis`, runs `body` for whole tiles and for what remains, closes it. `roots` are what the
  // body computes: their index sums are prepared as far out as possible.
  void EmitAxis(AxisId axis, const std::vector<UopId>& roots, const std::function<void()>& body);
  void EmitStaticAxis(AxisId axis, int64_t length, Reg low, const std::vector<UopId>& roots,
                      const std::function<void()>& body);
  void EmitBody(AxisId axis, Reg base, int64_t base_constant, int64_t count,
                const std::vector<UopId>& roots, const std::function<void()>& body);
  // Runs `body` for every combination of points of the open axes in `set`, the innermost fastest.
  void ForPoints(AxisSet set, const std::function<void()>& body);
  // The same with the axis of most points outermost: of a tile of r × v sums, whose factors have r
  // and v registers, the fewer are then held while the others come one by one.
  void ForTile(AxisSet set, const std::function<void()>& body);
  void ForPoints(const std::vector<AxisId>& axes, const std::function<void()>& body);
  // The current point of the axes in `set`, as one number.
  int64_t PointOf(AxisSet set) const;
  bool AtFirstPoint(AxisSet set) const;

  // ---- Where a value belongs -------------------------------------------------------------------

  size_t LevelOf(AxisSet set) const;
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
  void PreEmit(const std::vector<UopId>& roots);
  // The loads of this level, below `roots`, from parameters that are also written.
  void PreEmitReads(const std::vector<UopId>& roots);
  // Every reduction below `roots` that belongs to the level just opened.
  void CollectReduces(const std::vector<UopId>& roots);
  // True when `id` can be computed here without a reduction that is still to come.
  bool NeedsPendingReduce(UopId id) const;
  bool IsKnown(UopId id) const;

  // ---- Values ----------------------------------------------------------------------------------

  int64_t LanesOf(AxisSet set) const;
  // From here on the lanes of an open axis are points, each computed by itself; the point that we
  // were at. PutTogether ends that.
  int64_t TakeApart(AxisId axis);
  void PutTogether(AxisId axis, int64_t point);
  // The register of `id` at the current point. What it needs at this level is computed first, off
  // an explicit stack: operands may nest a thousand deep.
  Reg Value(UopId id);
  // The values that the code of `id` reads directly.
  std::vector<UopId> NeedsOf(UopId id) const;
  void Compute(UopId id);
  // The same with `lanes` lanes.
  Reg Wide(UopId id, int64_t lanes) { return Splat(Value(id), lanes); }
  Reg Splat(Reg reg, int64_t lanes);
  // A product to be fused into the op at the current level that alone reads it.
  bool Fuses(UopId product) const;
  // Which operand of a sum is a product to fuse.
  std::optional<size_t> FusedOperand(const Uop& uop) const;
  Reg Emit(UopId id);
  Reg EmitCustom(UopId id);

  // ---- Indices ---------------------------------------------------------------------------------

  // Σ coefficient·base over the open axes whose base is a register, computed at the level of the
  // deepest of them.
  Reg Prefix(const Affine& affine);
  Reg PrefixOf(const TermKey& terms);
  void PrepareIndices(AxisId axis, const std::vector<UopId>& roots);
  // The part of an affine expression that is known now: constant, points and constant bases.
  int64_t KnownPart(const Affine& affine) const;
  int64_t LaneStride(const Affine& affine) const;
  // An affine expression as a value of `lanes` lanes.
  Reg IndexOf(const Affine& affine, int64_t lanes);
  // How many lanes of a register over `set` stand for iterations; 0 for all of them.
  uint16_t ActiveLanes(AxisSet set) const;
  // low <= value < high with one unsigned comparison.
  Reg InRange(Reg value, int64_t low, int64_t high, int64_t lanes);
  Reg And(Reg x, Reg y);
  Address AddressOf(UopId id);
  Reg EmitLoad(UopId id);
  // The tiled axis along which a load with strided lanes is contiguous, if it has as many points
  // around the current one as there are lanes.
  std::optional<AxisId> TransposedAxis(const Uop& uop, int64_t lanes) const;
  // Loads one row for each lane, along `axis`, and computes `id` at all points of the block.
  Reg EmitTransposed(UopId id, AxisId axis, int64_t lanes);
  Reg AppendLoad(const Uop& uop, const Address& address, int64_t lanes, uint16_t active);

  // ---- Staging ---------------------------------------------------------------------------------

  // A staged value and where it lies: an index of the local buffer over the axes that are open, one
  // of which stands for where the block begins.
  struct Stage {
    UopId value = 0;
    Staging staging;
    uint32_t local = 0;  // as a parameter of loads and stores
    Affine index;
  };

  void PrepareStages();
  // Nothing for a value that is not staged, or is being computed for it.
  const Stage* StageOf(UopId id) const;
  // Computes what is staged for a block, at its beginning.
  void EmitBlockStages();
  // Computes what is staged for the tile of `axis` that has just been opened and `roots` need.
  void EmitTileStages(AxisId axis, const std::vector<UopId>& roots);
  void EmitCopy(const Stage& stage, size_t depth);
  void BeginCopy(const Stage& stage);
  void EndCopy();
  // Iterations that are held in registers at once.
  int64_t TileOf(AxisId axis) const {
    return axis == copied_rows_ ? copied_tile_ : kernel_.axes[axis].tile;
  }
  // Whether one of `roots` is `id` or reads it, directly or not.
  bool Reaches(std::vector<UopId> roots, UopId id) const;
  Reg EmitStagedLoad(const Stage& stage);
  Address StagedAddress(const Stage& stage);

  // ---- Stores ----------------------------------------------------------------------------------

  Reg PrepareStore(UopId id);
  bool AddsProduct(const Uop& store) const { return store.accumulate && Fuses(store.src[0]); }
  void EmitStore(UopId id, Reg value);

  // ---- Reductions ------------------------------------------------------------------------------

  struct Reduction {
    UopId id = 0;
    int64_t lanes = 1;
    int64_t partials = 1;
    std::map<int64_t, std::vector<Reg>> accumulators;  // by point of the free axes
    std::map<int64_t, Reg> sums;                       // to be packed, likewise
  };
  static void SetNeutral(LinearOp& op, Fold fold, DType dtype);
  int64_t PointsIn(AxisSet set) const;
  Reduction MakeReduction(UopId id) const;
  // Computes `id` at all points, together with the reductions that can share its loops.
  void EmitReduce(UopId id);
  void ReduceLoops(std::vector<Reduction>& group, const std::vector<UopId>& operands,
                   AxisSet all_free, const std::vector<AxisId>& axes, size_t depth);
  void Accumulate(Reduction& reduction, AxisSet bound);
  // In the body of `axis`, the innermost of sums: asks for rows of their products' panels ahead of
  // their use, where a row lies far from the one before.
  void FetchRows(const std::vector<UopId>& operands, AxisId axis);
  // Folds the partial accumulators pairwise, then the lanes, unless they are folded by Pack.
  void Finish(Reduction& reduction);
  // The sums of the lanes of `axis` as lanes of one register.
  void Pack(const Reduction& reduction, AxisId axis);
  // Folds the lanes of each register as Finish does; the results, side by side.
  Reg FoldAcross(std::vector<Reg> sums, const Reduction& reduction);

  // ---- Sums in tiles ---------------------------------------------------------------------------

  // Tiles of the body that is open, from the first to before the last.
  struct TileRange {
    int64_t first_row = 0;
    int64_t last_row = 0;
    int64_t first_column = 0;
    int64_t last_column = 0;
  };
  // Whether the tiles of a factor take turns in one register of each shape, so that all tiles of
  // the open body can be made at once; nothing where they cannot.
  std::optional<bool> SharesTileRegisters(const TileProduct& product) const;
  // Leaves the sums of the open body in memory of the worker's own.
  void EmitTiles(UopId id, const TileProduct& product);
  void EmitTileRange(UopId id, const TileProduct& product, const TileRange& range, bool shared);
  // The sums at the current point, after all of the body's where they are not there yet.
  Reg TileElements(UopId id);

  // One axis of the grid in the block at hand.
  struct GridRange {
    Reg low = kNoReg;    // kNoReg: starts at 0
    Reg high = kNoReg;   // when the last block is shorter
    int64_t length = 0;  // -1: the last block is shorter
  };

  // ---- Threads ---------------------------------------------------------------------------------

  void PrepareThreads();
  // What a thread does of its block of the grid; nothing where there is none for it.
  void OpenBlock();
  void CloseBlock();
  bool HasIdleBlocks() const;
  Reg ThreadAlong(Across across) const;
  // EmitAxis of an axis whose tiles are dealt out.
  void EmitDealtAxis(AxisId axis, const GridRange& grid, const std::vector<UopId>& roots,
                     const std::function<void()>& body);
  // The iterations [low, low + length) or, where length is negative, [low, high): whole tiles.
  void EmitDealtTiles(AxisId axis, Reg low, Reg high, int64_t length,
                      const std::vector<UopId>& roots, const std::function<void()>& body);
  // The last `points` of so many iterations, fewer than a tile, for the thread whose turn it is.
  void EmitDealtRest(AxisId axis, Reg tiles, Reg base, int64_t base_constant, int64_t points,
                     Reg condition, const std::vector<UopId>& roots,
                     const std::function<void()>& body);
  // Between them only one of the threads that have made the same value of a store.
  void OpenStores(UopId store);
  void CloseStores(UopId store);
  bool StoresOnce(UopId store, Across across) const;
  // Whether a reduction over these axes is folded over threads.
  bool FoldsAcross(const std::vector<AxisId>& axes) const;
  void If(Reg condition);
  Reg Equals(Reg a, Reg b);

  const Kernel& kernel_;
  const LinearizeOptions options_;
  const bool threads_;
  const std::vector<AxisSet> free_;
  std::vector<int> uses_;
  std::vector<bool> written_;
  Nest root_;
  std::vector<Level> chain_;
  std::vector<AxisState> state_;
  std::vector<GridRange> grid_;
  std::vector<Stage> stages_;
  std::map<UopId, uint32_t> tile_locals_;  // where the sums of a reduction lie, as a parameter
  std::optional<UopId> copying_;           // the staged value that is being computed
  AxisId apart_ = kNoAxis;                 // whose lanes are points just now
  int64_t copied_tile_ = 1;
  AxisId copied_rows_ = kNoAxis;  // a reduce axis that then has a row for each lane in its tile
  AxisSet open_ = 0;
  Reg block_ = kNoReg;
};

}  // namespace l3c::l0
