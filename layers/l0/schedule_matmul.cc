#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/scheduler.h"
#include "layers/l0/staging.h"

namespace l3c::l0 {
namespace {

// Operands beyond this are streamed from memory, so the loop order matters (bytes; a usual L2).
constexpr double kCacheBytes = 1 << 20;
// A usual second cache: lines of 16 f32, in sets of few.
constexpr double kLineElements = 16;
constexpr int64_t kCacheSets = 2048;
constexpr int64_t kCacheWays = 8;
// Panels of b that are used again as often as this are worth a copy (staging.h).
constexpr double kStagedUses = 8;
// Candidates with a block of rows; those without come after them.
constexpr size_t kMaxBlocked = 2;
// A block of rows, copied, leaves most of the second cache to the panels beside it (bytes).
constexpr double kRowBlockBytes = 512 << 10;
// Sums shorter than this many registers of lanes are not worth lanes along the sum.
constexpr double kShortSum = 4;

}  // namespace

std::optional<Scheduler::Contraction> Scheduler::FindContraction() const {
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

AxisId Scheduler::LongestOf(AxisSet set) const {
  std::optional<AxisId> best;
  for (AxisId axis : AxesIn(set)) {
    if (!best || Extent(axis) >= Extent(*best)) best = axis;
  }
  return *best;
}

void Scheduler::Matmul() {
  Contraction c = *contraction_;
  Tiles(c);
  std::swap(c.rows, c.columns);
  std::swap(c.a, c.b);
  Tiles(c);
  c = *contraction_;
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

void Scheduler::Gathered(const Contraction& c) {
  const AxisId down = LongestOf(c.rows);
  const AxisId across = LongestOf(c.columns);
  for (const int64_t rows : {target_.vector_registers - 8, target_.vector_registers / 2 - 4}) {
    const int64_t r = std::min(rows, std::max<int64_t>(Extent(down), 1));
    Schedule schedule = Start("gather " + std::to_string(r) + "x" + std::to_string(lanes_));
    SetVector(schedule, across, 1);
    schedule.axes[down].tile = r;
    schedule.loads_per_fma = static_cast<double>(r + lanes_) / static_cast<double>(r);
    schedule.accumulators = static_cast<int>(r);
    AddGrid(schedule, c, across, down);
  }
}

void Scheduler::Outer(const Contraction& c, AxisId across) {
  const AxisId down = LongestOf(c.rows);
  const bool many = target_.vector_registers >= 32;
  const std::vector<std::pair<int64_t, int64_t>> shapes =
      many ? std::vector<std::pair<int64_t, int64_t>>{{6, 4}, {8, 3}, {12, 2}, {4, 4}, {12, 1},
                                                      {8, 1}, {4, 2}, {2, 4},  {1, 8}}
           : std::vector<std::pair<int64_t, int64_t>>{{6, 2}, {4, 2}, {8, 1}, {2, 4}, {1, 8}};
  struct Choice {
    double cost;
    int64_t rows;
    int64_t vectors;
  };
  std::vector<Choice> choices;
  const double panel = Points(c.bound | c.columns) * 4;
  const bool columns_first = panel > kCacheBytes;
  // Rows that lie so far apart that a tile of them, walked down the sum, drops from the cache what
  // the next tile would find there: each tile fetches whole lines again.
  const bool far = columns_first && FallsOnFewSets(c, down);
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
    const double again =
        std::ceil(static_cast<double>(Extent(down)) / static_cast<double>(choice.rows)) *
        Points(c.rows & ~AxisBit(down));
    if (far && found_.size() < kMaxBlocked) Blocked(schedule, c, across, down);
    if (columns_first && again >= kStagedUses) {
      Schedule staged = schedule;
      staged.name += " staged";
      staged.staged = {c.b};
      staged.far_bytes = panel;
      if (far) {
        const double lines = std::max(1.0, kLineElements / static_cast<double>(choice.rows));
        staged.far_bytes += Points(c.bound | c.rows) * 4 * lines * Points(c.columns) /
                            static_cast<double>(schedule.axes[across].tile);
      }
      if (AddGrid(staged, c, across, down) && found_.size() > 2) continue;
    }
    // Rows outermost re-read b for every tile of rows; columns outermost re-read a.
    if (columns_first) schedule.far_bytes = panel * again;
    AddGrid(schedule, c, columns_first ? across : down, columns_first ? down : across);
    if (columns_first && found_.size() < 3) {
      schedule.name += " rows first";
      AddGrid(schedule, c, down, across);
    }
  }
}

bool Scheduler::FallsOnFewSets(const Contraction& c, AxisId down) const {
  for (UopId id : ConeOf(c.a)) {
    const Uop& uop = kernel_.uops[id];
    if (uop.op != UOp::kLoad || CoefficientOf(uop.index, down) != 1) continue;
    for (AxisId axis : AxesIn(c.bound)) {
      const int64_t stride = CoefficientOf(uop.index, axis);
      if (stride < kLineElements) continue;
      const int64_t lines = stride / static_cast<int64_t>(kLineElements);
      const int64_t sets = kCacheSets / std::gcd(kCacheSets, lines);
      if (Extent(axis) > sets * kCacheWays) return true;
    }
  }
  return false;
}

bool Scheduler::Blocked(const Schedule& tiled, const Contraction& c, AxisId across, AxisId down) {
  const int64_t tile = tiled.axes[down].tile;
  const double columns = static_cast<double>(tiled.axes[across].tile);
  const double tiles = Points(c.columns) / columns;
  if (tiles < kStagedUses) return false;
  for (const Uop& uop : kernel_.uops) {
    if (uop.op == UOp::kRange && uop.axis == down) return false;
  }
  const int64_t block = RowsOfBlock(down, tile, Points(c.bound), columns);
  if (block == 0) return false;
  Schedule schedule = tiled;
  schedule.name += " blocked";
  schedule.staged = {std::min(c.a, c.b), std::max(c.a, c.b)};
  schedule.far_bytes = Points(c.bound | c.rows) * 4 + Points(c.bound | c.columns) * 4 *
                                                          Points(c.rows) /
                                                          static_cast<double>(block);
  // The blocks, and each combination of the other rows, are handed out.
  std::vector<AxisId> order = AxesIn(c.batch | (c.rows & ~AxisBit(down)));
  AxisId rows = down;
  if (block < Extent(down)) {
    rows = static_cast<AxisId>(kernel_.axes.size());
    schedule.split = AxisSplit{down, block};
    schedule.axes.push_back(schedule.axes[down]);
    schedule.axes[down] = {};
    order.push_back(down);
  }
  for (AxisId axis : order) {
    if (std::find(grid_.begin(), grid_.end(), axis) == grid_.end()) return false;
    schedule.axes[axis].kind = AxisKind::kGrid;
  }
  for (AxisId axis : AxesIn(c.columns & ~AxisBit(across))) order.push_back(axis);
  order.push_back(across);
  order.push_back(rows);
  return Points(c.rows | c.batch) >= static_cast<double>(target_.workers * block) &&
         Keep(schedule, order);
}

int64_t Scheduler::RowsOfBlock(AxisId down, int64_t tile, double sum, double columns) const {
  const double most = std::min<double>(kRowBlockBytes, kMaxStagedBytes - sum * columns * 4);
  const auto rows = static_cast<int64_t>(most / (sum * 4)) / tile * tile;
  for (int64_t block = std::min(Extent(down), rows); block >= 4 * tile; --block) {
    if (Extent(down) % block == 0) return block;
  }
  return 0;
}

double Scheduler::Imbalance(int64_t extent, int64_t tile) const {
  if (extent == 0) return 1;
  const int64_t tiles = (extent + tile - 1) / tile;
  const int64_t most = (tiles + target_.workers - 1) / target_.workers * tile;
  return static_cast<double>(std::min(most, extent) * target_.workers) /
         static_cast<double>(std::max<int64_t>(extent, target_.workers));
}

double Scheduler::OuterCost(int64_t rows, int64_t vectors, int64_t r, int64_t v) {
  constexpr double kInFlight = 8;
  const auto body = [&](int64_t rr, int64_t vv) {
    if (rr == 0 || vv == 0) return 0.0;
    const double fmas = static_cast<double>(rr * vv);
    const double loads = static_cast<double>(rr + vv);
    return std::max({fmas + 0.15 * loads, loads, kInFlight});
  };
  const double full_r = static_cast<double>(rows / r);
  const double full_v = static_cast<double>(vectors / v);
  return full_r * full_v * body(r, v) + full_r * body(r, vectors % v) + full_v * body(rows % r, v) +
         body(rows % r, vectors % v);
}

bool Scheduler::IsStoredAlong(AxisId axis) const {
  return std::any_of(kernel_.uops.begin(), kernel_.uops.end(), [&](const Uop& uop) {
    return uop.op == UOp::kStore && CoefficientOf(uop.index, axis) == 1;
  });
}

void Scheduler::Dot(Contraction c) {
  AxisId down = LongestOf(c.rows);
  AxisId across = LongestOf(c.columns);
  // Sums that are stored side by side are packed, and what is made of them has lanes.
  if (!IsStoredAlong(across) && IsStoredAlong(down)) {
    std::swap(c.rows, c.columns);
    std::swap(c.a, c.b);
    std::swap(down, across);
  }
  const std::optional<AxisId> along = BestReduceAxis(c.reduce);
  const bool many = target_.vector_registers >= 32;
  struct Shape {
    int64_t rows;
    int64_t columns;
    bool packed = false;
  };
  std::vector<Shape> shapes;
  if (along && IsStoredAlong(across)) {
    shapes = many ? std::vector<Shape>{{3, 8, true}, {2, 8, true}, {4, 4, true}, {1, 16, true}}
                  : std::vector<Shape>{{3, 4, true}, {2, 4, true}};
    std::erase_if(shapes, [&](const Shape& shape) {
      return shape.columns > std::min(Extent(across), lanes_);
    });
  }
  const std::vector<Shape> alone = many ? std::vector<Shape>{{4, 4}, {4, 6}, {2, 8}, {6, 4}, {2, 4}}
                                        : std::vector<Shape>{{2, 4}, {3, 3}, {2, 2}};
  // Where sums are packed, those that are not are the exception.
  shapes.insert(shapes.end(), alone.begin(), shapes.empty() ? alone.end() : alone.begin() + 2);
  for (const auto& [rows, columns, packed] : shapes) {
    const int64_t r = std::min(rows, std::max<int64_t>(Extent(down), 1));
    const int64_t n = std::min(columns, std::max<int64_t>(Extent(across), 1));
    Schedule schedule = Start("dot " + std::to_string(r) + "x" + std::to_string(n));
    if (packed) schedule.name += " packed";
    if (along) SetVector(schedule, *along, 1);
    schedule.axes[down].tile = r;
    schedule.axes[across].tile = n;
    if (packed) schedule.axes[across].vector = n;
    schedule.loads_per_fma = static_cast<double>(r + n) / static_cast<double>(r * n);
    schedule.accumulators = static_cast<int>(r * n);
    const bool columns_first = Points(c.bound | c.columns) * 4 > kCacheBytes;
    // The factor of the inner loop is read again for every tile of the outer one.
    const double again = columns_first
                             ? static_cast<double>(Extent(across)) / static_cast<double>(n)
                             : static_cast<double>(Extent(down)) / static_cast<double>(r);
    const double inner = Points(c.bound | (columns_first ? c.rows : c.columns)) * 4;
    if (inner > kCacheBytes) schedule.far_bytes = inner * std::ceil(again);
    AddGrid(schedule, c, columns_first ? across : down, columns_first ? down : across);
  }
}

bool Scheduler::AddGrid(const Schedule& schedule, const Contraction& c, AxisId outer,
                        AxisId inner) {
  // A batch of products one after the other; of each, the axis that is tiled runs inside of the
  // others of its factor, so that what a tile reads is near while it is read.
  std::vector<AxisId> order = AxesIn(c.batch);
  for (AxisId tiled : {outer, inner}) {
    for (AxisId axis : AxesIn((c.rows & AxisBit(tiled)) != 0 ? c.rows : c.columns)) {
      if (axis != tiled) order.push_back(axis);
    }
    order.push_back(tiled);
  }
  for (AxisId axis : order) {
    if (std::find(grid_.begin(), grid_.end(), axis) == grid_.end()) continue;
    const int64_t tile = schedule.axes[axis].tile;
    const int64_t tiles = (Extent(axis) + tile - 1) / tile;
    const int64_t least = axis == inner ? 1 : axis == outer ? target_.workers : 2 * target_.workers;
    if (tiles < least) continue;
    Schedule grid = schedule;
    SetGrid(grid, axis);
    if (Keep(grid, order)) return true;
  }
  // None of the axes of the product can be split.
  Schedule grid = schedule;
  if (const std::optional<AxisId> axis = GridAxis(schedule)) SetGrid(grid, *axis);
  return Keep(grid, order);
}

}  // namespace l3c::l0
