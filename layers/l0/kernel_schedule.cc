#include "layers/l0/kernel_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_verify.h"

namespace l3c::l0 {
namespace {

constexpr size_t kMaxCandidates = 8;
// Kernels with less work than this run as one block: handing out more costs more than it gains.
constexpr double kSmallWork = 16384;
// Blocks for each worker, so that one that started late still evens out.
constexpr int64_t kBlocksPerWorker = 8;
// Operands beyond this are streamed from memory, so the loop order matters (bytes; a usual L2).
constexpr double kCacheBytes = 1 << 20;
// Sums shorter than this many registers of lanes are not worth lanes along the sum.
constexpr double kShortSum = 4;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

AxisSet SetOf(const std::vector<AxisId>& axes) {
  AxisSet set = 0;
  for (AxisId axis : axes) set |= AxisBit(axis);
  return set;
}

// A reduction of a product whose factors have axes of their own.
struct Contraction {
  UopId reduce = 0;
  AxisSet rows = 0;     // axes of factor a alone
  AxisSet columns = 0;  // of factor b alone
  AxisSet batch = 0;    // loop axes of both
  AxisSet bound = 0;
  UopId a = 0;
  UopId b = 0;
};

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const ScheduleTarget& target)
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

  KernelClass Class() const {
    if (contraction_) return KernelClass::kMatmul;
    bool columns = false;
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      if (kernel_.uops[id].op != UOp::kReduce) continue;
      if (BestReduceAxis(id)) return KernelClass::kRows;
      columns = true;
    }
    return columns ? KernelClass::kColumns : KernelClass::kElementwise;
  }

  std::vector<Schedule> Candidates() {
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

 private:
  int64_t Extent(AxisId axis) const { return kernel_.axes[axis].extent; }
  AxisSet AllAxes() const { return (AxisSet{1} << kernel_.axes.size()) - 1; }

  double Points(AxisSet set) const {
    double points = 1;
    for (AxisId axis : AxesIn(set)) points *= static_cast<double>(Extent(axis));
    return points;
  }

  // The axes over which a uop is evaluated.
  AxisSet ScopeOf(UopId id) const {
    const Uop& uop = kernel_.uops[id];
    AxisSet set = free_[id];
    if (uop.op == UOp::kReduce) set |= free_[uop.src[0]] | SetOf(uop.axes);
    return set;
  }

  // Everything that `root` reads, itself included.
  std::vector<UopId> ConeOf(UopId root) const {
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

  // How well the accesses among `uops` suit lanes along `axis`: each counts its points, for when
  // its neighbours are neighbours in memory, against when they are not.
  double Contiguity(AxisId axis, const std::vector<UopId>& uops) const {
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

  std::optional<AxisId> BestOf(AxisSet set, const std::vector<UopId>& uops) const {
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

  // The reduce axis along which a reduction reads neighbours, if it is better than the loop axes.
  std::optional<AxisId> BestReduceAxis(UopId reduce) const {
    const std::vector<UopId> cone = ConeOf(kernel_.uops[reduce].src[0]);
    const AxisSet bound = SetOf(kernel_.uops[reduce].axes);
    const std::optional<AxisId> best = BestOf(bound | free_[reduce], cone);
    return best && (AxisBit(*best) & bound) ? best : std::nullopt;
  }

  // Where nothing is read along the sum, such as a comparison of each index with a label, its last
  // axis will do, if it is long enough.
  std::optional<AxisId> FreeReduceAxis(UopId reduce) const {
    const AxisSet bound = SetOf(kernel_.uops[reduce].axes);
    for (UopId id : ConeOf(kernel_.uops[reduce].src[0])) {
      if (kernel_.uops[id].op == UOp::kLoad && (free_[id] & bound)) return std::nullopt;
    }
    const AxisId last = kernel_.uops[reduce].axes.back();
    return Extent(last) >= lanes_ ? std::optional<AxisId>(last) : std::nullopt;
  }

  // ---- Building -----------------------------------------------------------------------------

  Schedule Start(std::string name) const {
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

  void SetVector(Schedule& schedule, AxisId axis, int64_t registers) const {
    schedule.axes[axis].vector = lanes_;
    schedule.axes[axis].tile = std::min(registers * lanes_, RoundUp(Extent(axis), lanes_));
  }

  bool HasVector(const Schedule& schedule, AxisSet set) const {
    for (AxisId axis : AxesIn(set)) {
      if (schedule.axes[axis].vector > 1) return true;
    }
    return false;
  }

  // Lanes wherever neighbours are contiguous: first along the stores, then along the reductions
  // that have none yet.
  void SetVectors(Schedule& schedule, int64_t registers) const {
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

  // No value would have lanes along two axes.
  bool VectorFits(const Schedule& schedule, AxisId axis) const {
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const AxisSet scope = ScopeOf(id);
      if ((scope & AxisBit(axis)) && HasVector(schedule, scope & ~AxisBit(axis))) return false;
    }
    return true;
  }

  // Makes `axis` a grid axis, cut into whole tiles: the largest blocks, up to a few for each
  // worker, with which the worker that gets most finishes soonest.
  void SetGrid(Schedule& schedule, AxisId axis) const {
    AxisSchedule& a = schedule.axes[axis];
    a.kind = AxisKind::kGrid;
    const int64_t tiles = std::max<int64_t>((Extent(axis) + a.tile - 1) / a.tile, 1);
    if (work_ < kSmallWork) {
      a.block = tiles * a.tile;
      return;
    }
    const int64_t wanted = kBlocksPerWorker * target_.workers;
    const auto longest = [&](int64_t block_tiles) {
      return std::min(RoundUp(tiles, block_tiles * target_.workers) / target_.workers, tiles);
    };
    int64_t best = (tiles + wanted - 1) / wanted;
    for (int64_t block_tiles = best; block_tiles-- > 1;) {
      if (longest(block_tiles) < longest(best)) best = block_tiles;
    }
    a.block = best * a.tile;
  }

  // The first axis with enough iterations for all workers, or else the one with the most.
  std::optional<AxisId> GridAxis(const Schedule& schedule) const {
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

  // Completes the order and the figures; keeps the schedule unless it is illegal (then false) or
  // known already.
  bool Keep(Schedule schedule, std::vector<AxisId> first = {}) {
    const auto append = [&](AxisId axis) {
      auto& order = schedule.order;
      if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
    };
    const auto append_kind = [&](AxisKind kind) {
      for (AxisId axis : first) {
        if (schedule.axes[axis].kind == kind) append(axis);
      }
      for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) {
        if (schedule.axes[axis].kind == kind) append(axis);
      }
    };
    append_kind(AxisKind::kGrid);
    append_kind(AxisKind::kLoop);
    append_kind(AxisKind::kReduce);
    for (const Schedule& other : found_) {
      if (other.order == schedule.order && Same(other.axes, schedule.axes)) return true;
    }
    const Kernel scheduled = ApplySchedule(kernel_, schedule);
    support::Diagnostics diagnostics;
    if (!VerifyKernel(scheduled, diagnostics)) return false;
    schedule.blocks = NumBlocks(scheduled);
    schedule.lane_use = LaneUse(schedule);
    found_.push_back(std::move(schedule));
    return true;
  }

  static bool Same(const std::vector<AxisSchedule>& x, const std::vector<AxisSchedule>& y) {
    return std::equal(
        x.begin(), x.end(), y.begin(), y.end(), [](const AxisSchedule& a, const AxisSchedule& b) {
          return a.kind == b.kind && a.block == b.block && a.tile == b.tile && a.vector == b.vector;
        });
  }

  // Of the widest scope: points over (registers × lanes).
  double LaneUse(const Schedule& schedule) const {
    double use = 1;
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis) {
      const AxisSchedule& a = schedule.axes[axis];
      if (a.vector == 1 || Extent(axis) == 0) continue;
      use *=
          static_cast<double>(Extent(axis)) / static_cast<double>(RoundUp(Extent(axis), a.vector));
    }
    return use;
  }

  // ---- Elementwise and column sums ----------------------------------------------------------

  void Vectors() {
    if (const std::optional<AxisId> axis = TransposedAxis()) {
      Schedule schedule =
          Start("transpose " + std::to_string(lanes_) + "x" + std::to_string(lanes_));
      SetVectors(schedule, 1);
      schedule.axes[*axis].tile = lanes_;
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

  // An axis along which some load is contiguous that is not so along the axis with lanes: with a
  // tile of it, such loads read whole rows and are transposed in registers.
  std::optional<AxisId> TransposedAxis() const {
    Schedule schedule = Start("");
    SetVectors(schedule, 1);
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

  // ---- Rows ---------------------------------------------------------------------------------

  void Rows() {
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

  // The order of the axes for sums that are added up in memory: those that more of the sums keep
  // outside, so that each stays at one place for as long as it can; the columns innermost.
  std::vector<AxisId> RowsOutside(const Schedule& schedule) const {
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

  // ---- Matmul -------------------------------------------------------------------------------

  std::optional<Contraction> FindContraction() const {
    std::optional<Contraction> best;
    double most = 0;
    for (UopId id = 0; id < kernel_.uops.size(); ++id) {
      const Uop& reduce = kernel_.uops[id];
      if (reduce.op != UOp::kReduce || reduce.fold != Fold::kAdd) continue;
      const Uop& product = kernel_.uops[reduce.src[0]];
      if (!IsProduct(product)) continue;
      Contraction c;
      c.reduce = id;
      c.bound = SetOf(reduce.axes);
      c.a = product.src[0];
      c.b = product.src[1];
      c.rows = free_[c.a] & ~free_[c.b] & ~c.bound;
      c.columns = free_[c.b] & ~free_[c.a] & ~c.bound;
      c.batch = free_[c.a] & free_[c.b] & ~c.bound;
      if (c.rows == 0 || c.columns == 0) continue;
      const double points = Points(ScopeOf(id));
      if (!best || points > most) {
        best = c;
        most = points;
      }
    }
    return best;
  }

  AxisId LongestOf(AxisSet set) const {
    std::optional<AxisId> best;
    for (AxisId axis : AxesIn(set)) {
      if (!best || Extent(axis) >= Extent(*best)) best = axis;
    }
    return *best;
  }

  void Matmul() {
    Contraction c = *contraction_;
    std::optional<AxisId> across = BestOf(c.columns, ConeOf(c.b));
    const std::optional<AxisId> down = BestOf(c.rows, ConeOf(c.a));
    // Where both factors are contiguous along their own axis, the store decides.
    bool swap = down && !across;
    if (down && across) {
      double right = 0;
      for (UopId id = 0; id < kernel_.uops.size(); ++id) {
        const Uop& uop = kernel_.uops[id];
        if (uop.op != UOp::kStore) continue;
        if (CoefficientOf(uop.index, *across) == 1) right += 1;
        if (CoefficientOf(uop.index, *down) == 1) right -= 1;
      }
      swap = right < 0;
    }
    if (swap) {
      std::swap(c.rows, c.columns);
      std::swap(c.a, c.b);
      across = down;
    }
    if (across) return Outer(c, *across);
    // A short sum fills few lanes; gathering a vector of columns costs less, shared by many rows.
    if (Points(c.bound) < kShortSum * lanes_) Gathered(c);
    Dot(c);
  }

  // Lanes along the columns though they are strided in b; as many rows as registers hold.
  void Gathered(const Contraction& c) {
    const AxisId down = LongestOf(c.rows);
    const AxisId across = LongestOf(c.columns);
    for (const int64_t rows : {target_.vector_registers - 8, target_.vector_registers / 2 - 4}) {
      const int64_t r = std::min(rows, std::max<int64_t>(Extent(down), 1));
      Schedule schedule = Start("gather " + std::to_string(r) + "x" + std::to_string(lanes_));
      SetVector(schedule, across, 1);
      schedule.axes[down].tile = r;
      schedule.loads_per_fma = static_cast<double>(r + lanes_) / static_cast<double>(r);
      schedule.accumulators = static_cast<int>(r);
      AddGrid(schedule, across, down);
    }
  }

  // Accumulators of `rows` × `vectors` registers; a row broadcasts a, the vectors load b.
  void Outer(const Contraction& c, AxisId across) {
    const AxisId down = LongestOf(c.rows);
    const bool many = target_.vector_registers >= 32;
    const std::vector<std::pair<int64_t, int64_t>> shapes =
        many ? std::vector<std::pair<int64_t, int64_t>>{{6, 4}, {8, 3}, {12, 2}, {4, 4}, {12, 1},
                                                        {8, 1}, {4, 2}, {2, 4},  {1, 8}}
             : std::vector<std::pair<int64_t, int64_t>>{{6, 2}, {4, 2}, {4, 3}, {3, 4},
                                                        {8, 1}, {2, 4}, {1, 8}};
    struct Choice {
      double cost;
      int64_t rows;
      int64_t vectors;
    };
    std::vector<Choice> choices;
    const double panel = Points(c.bound | c.columns) * 4;
    const bool columns_first = panel > kCacheBytes;
    for (const auto& [rows, vectors] : shapes) {
      const int64_t wide = RoundUp(Extent(across), lanes_) / lanes_;
      const int64_t r = std::min(rows, std::max<int64_t>(Extent(down), 1));
      const int64_t v = std::min(vectors, std::max<int64_t>(wide, 1));
      const bool known = std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
        return choice.rows == r && choice.vectors == v;
      });
      if (known) continue;
      const double balance = columns_first ? Imbalance(wide, v) : Imbalance(Extent(down), r);
      choices.push_back({balance * OuterCost(Extent(down), wide, r, v), r, v});
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& x, const Choice& y) { return x.cost < y.cost; });
    for (const Choice& choice : choices) {
      if (found_.size() + 2 > kMaxCandidates) break;
      Schedule schedule = Start("tile " + std::to_string(choice.rows) + "x" +
                                std::to_string(choice.vectors * lanes_));
      SetVector(schedule, across, choice.vectors);
      schedule.axes[down].tile = choice.rows;
      SetVectors(schedule, 4);
      schedule.loads_per_fma = static_cast<double>(choice.rows + choice.vectors) /
                               static_cast<double>(choice.rows * choice.vectors);
      schedule.accumulators = static_cast<int>(choice.rows * choice.vectors);
      // Rows outermost re-read b for every tile of rows; columns outermost re-read a.
      AddGrid(schedule, columns_first ? across : down, columns_first ? down : across);
      if (columns_first && found_.size() < 3) {
        schedule.name += " rows first";
        AddGrid(schedule, down, across);
      }
    }
  }

  // How much longer the busiest worker takes than a fair share, when `extent` is dealt out in
  // tiles.
  double Imbalance(int64_t extent, int64_t tile) const {
    if (extent == 0) return 1;
    const int64_t tiles = (extent + tile - 1) / tile;
    const int64_t most = (tiles + target_.workers - 1) / target_.workers * tile;
    return static_cast<double>(std::min(most, extent) * target_.workers) /
           static_cast<double>(std::max<int64_t>(extent, target_.workers));
  }

  // Cycles for one step of k over the whole output, in units of a vector multiply-add: full tiles
  // and remainders each as long as the slower of multiply-adds, loads (two a cycle, as many as
  // multiply-adds) and the latency of a chain of sums (4 cycles, 2 a cycle: 8 in flight).
  static double OuterCost(int64_t rows, int64_t vectors, int64_t r, int64_t v) {
    constexpr double kInFlight = 8;
    const auto body = [&](int64_t rr, int64_t vv) {
      if (rr == 0 || vv == 0) return 0.0;
      const double fmas = static_cast<double>(rr * vv);
      const double loads = static_cast<double>(rr + vv);
      return std::max({fmas + 0.15 * loads, loads, kInFlight});
    };
    const double full_r = static_cast<double>(rows / r);
    const double full_v = static_cast<double>(vectors / v);
    return full_r * full_v * body(r, v) + full_r * body(r, vectors % v) +
           full_v * body(rows % r, v) + body(rows % r, vectors % v);
  }

  // Lanes along the sum; rows × columns accumulators of one register each.
  void Dot(const Contraction& c) {
    const AxisId down = LongestOf(c.rows);
    const AxisId across = LongestOf(c.columns);
    const std::optional<AxisId> along = BestReduceAxis(c.reduce);
    const bool many = target_.vector_registers >= 32;
    const std::vector<std::pair<int64_t, int64_t>> shapes =
        many ? std::vector<std::pair<int64_t, int64_t>>{{4, 4}, {4, 6}, {2, 8}, {6, 4}, {2, 4}}
             : std::vector<std::pair<int64_t, int64_t>>{{2, 4}, {3, 3}, {2, 2}};
    for (const auto& [rows, columns] : shapes) {
      const int64_t r = std::min(rows, std::max<int64_t>(Extent(down), 1));
      const int64_t n = std::min(columns, std::max<int64_t>(Extent(across), 1));
      Schedule schedule = Start("dot " + std::to_string(r) + "x" + std::to_string(n));
      if (along) SetVector(schedule, *along, 1);
      schedule.axes[down].tile = r;
      schedule.axes[across].tile = n;
      schedule.loads_per_fma = static_cast<double>(r + n) / static_cast<double>(r * n);
      schedule.accumulators = static_cast<int>(r * n);
      const bool columns_first = Points(c.bound | c.columns) * 4 > kCacheBytes;
      AddGrid(schedule, columns_first ? across : down, columns_first ? down : across);
    }
  }

  // `outer` becomes the grid where the stores allow it, else `inner`.
  void AddGrid(const Schedule& schedule, AxisId outer, AxisId inner) {
    for (AxisId axis : {outer, inner}) {
      if (std::find(grid_.begin(), grid_.end(), axis) == grid_.end()) continue;
      const int64_t tile = schedule.axes[axis].tile;
      if (axis == outer && (Extent(axis) + tile - 1) / tile < target_.workers) continue;
      Schedule grid = schedule;
      SetGrid(grid, axis);
      if (Keep(grid, {outer, inner})) return;
    }
    // A batch of products, or none of the axes can be split.
    Schedule grid = schedule;
    if (const std::optional<AxisId> axis = GridAxis(schedule)) SetGrid(grid, *axis);
    Keep(grid, {outer, inner});
  }

  const Kernel& kernel_;
  const ScheduleTarget target_;
  const std::vector<AxisSet> free_;
  int64_t lanes_ = 16;
  double work_ = 0;           // points of the widest loop nest
  std::vector<AxisId> grid_;  // axes that may be split between workers
  std::optional<Contraction> contraction_;
  std::vector<Schedule> found_;
};

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

Kernel ApplySchedule(const Kernel& kernel, const Schedule& schedule) {
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
  }
  for (Uop& uop : scheduled.uops) {
    uop.index = Renumber(uop.index, position);
    for (Guard& guard : uop.guards) guard.expression = Renumber(guard.expression, position);
    if (uop.op == UOp::kRange) uop.axis = position[uop.axis];
    for (AxisId& axis : uop.axes) axis = position[axis];
    std::sort(uop.axes.begin(), uop.axes.end());
  }
  return scheduled;
}

}  // namespace l3c::l0
