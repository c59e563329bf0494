#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/scheduler.h"
#include "layers/l0/tile_product.h"

namespace l3c::l0 {
namespace {

// Panels of the columns' factor that are used again as often as this are worth a copy (staging.h):
// a tile of it has 16 rows, which otherwise lie a whole row of the matrix apart.
constexpr double kCopiedUses = 4;

}  // namespace

void Scheduler::Tiles(const Contraction& c) {
  if (!target_.tiles || kernel_.uops[kernel_.uops[c.reduce].src[0]].custom != kBf16Dot) return;
  const Uop& right = kernel_.uops[c.b];
  std::optional<AxisId> across;
  for (AxisId axis : AxesIn(c.columns)) {
    if (CoefficientOf(right.index, axis) == 1 && Extent(axis) > 1) across = axis;
  }
  if (!across || kernel_.uops[c.reduce].axes.size() != 1) return;
  for (const Uop& uop : kernel_.uops) {
    if (uop.op == UOp::kStore && CoefficientOf(uop.index, *across) > 1) return;
  }
  const AxisId down = LongestOf(c.rows);
  const AxisId sum = kernel_.uops[c.reduce].axes[0];
  std::vector<std::pair<int64_t, int64_t>> tried;
  for (const auto& [most_tall, most_wide] :
       {std::pair<int64_t, int64_t>{2, 2}, {1, 4}, {4, 1}, {3, 2}}) {
    const int64_t tall = std::min(most_tall, RoundUp(Extent(down), kTileEdge) / kTileEdge);
    const int64_t wide = std::min(most_wide, RoundUp(Extent(*across), kTileEdge) / kTileEdge);
    const std::pair shape{tall, wide};
    if (std::find(tried.begin(), tried.end(), shape) != tried.end()) continue;
    tried.push_back(shape);
    const int64_t rows = std::min(tall * kTileEdge, Extent(down));
    Schedule schedule =
        Start("tiles " + std::to_string(rows) + "x" + std::to_string(wide * kTileEdge));
    schedule.in_tiles = {c.reduce};
    schedule.axes[down].tile = rows;
    schedule.axes[*across].vector = kTileEdge;
    schedule.axes[*across].tile = wide * kTileEdge;
    schedule.axes[sum].tile = kTileEdge;
    SetVectors(schedule, 4);
    schedule.loads_per_fma = static_cast<double>(tall + wide) / static_cast<double>(tall * wide);
    schedule.accumulators = static_cast<int>(tall * wide);
    const double again = std::ceil(static_cast<double>(Extent(down)) / static_cast<double>(rows)) *
                         Points(c.rows & ~AxisBit(down));
    if (again >= kCopiedUses) {
      Schedule staged = schedule;
      staged.name += " staged";
      staged.staged = {c.b};
      AddGrid(staged, c, *across, down);
    }
    AddGrid(schedule, c, down, *across);
    if (found_.size() + 4 > kMaxCandidates) break;
  }
}

}  // namespace l3c::l0
