#include "layers/l0/tile_product.h"

#include <algorithm>
#include <utility>

#include "layers/tensor/bf16.h"

namespace l3c::l0 {
namespace {

static_assert(kTileEdge == tensor::kBf16TilePairs);

// Read as it lies, by whoever reads it.
bool IsPlainLoad(const Kernel& kernel, const Uop& uop) {
  return uop.op == UOp::kLoad && uop.guards.empty() && !IsDynamic(uop) &&
         kernel.params[uop.param].access == Access::kIn;
}

int64_t Tiles(const Axis& axis) {
  const int64_t points = std::min(axis.tile, std::max<int64_t>(axis.extent, 1));
  return (points + kTileEdge - 1) / kTileEdge;
}

}  // namespace

std::optional<TileProduct> TileProductOf(const Kernel& kernel, UopId id,
                                         const std::vector<AxisSet>& free, std::string* why) {
  const auto refuse = [&](std::string reason) -> std::optional<TileProduct> {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  const Uop& reduce = kernel.uops[id];
  if (reduce.op != UOp::kReduce || reduce.fold != Fold::kAdd || reduce.axes.size() != 1) {
    return refuse("it is no sum over one axis");
  }
  const UopId product = reduce.src[0];
  if (kernel.uops[product].op != UOp::kCustom || kernel.uops[product].custom != kBf16Dot) {
    return refuse("it sums no bf16_dot");
  }
  int64_t users = 0;
  for (const Uop& uop : kernel.uops) users += std::count(uop.src.begin(), uop.src.end(), product);
  if (users > 1) return refuse("something else reads the products");
  TileProduct tile;
  tile.sum = reduce.axes[0];
  tile.left = kernel.uops[product].src[0];
  tile.right = kernel.uops[product].src[1];
  const auto columns_of = [&](UopId factor) {
    std::optional<AxisId> found;
    for (AxisId axis : AxesIn(free[factor])) {
      if (kernel.axes[axis].vector > 1) found = axis;
    }
    return found;
  };
  if (columns_of(tile.left)) std::swap(tile.left, tile.right);
  const std::optional<AxisId> columns = columns_of(tile.right);
  if (!columns || columns_of(tile.left) || kernel.axes[*columns].vector != kTileEdge) {
    return refuse("one factor has " + std::to_string(kTileEdge) + " lanes, the other has none");
  }
  tile.columns = *columns;
  const Uop& left = kernel.uops[tile.left];
  const Uop& right = kernel.uops[tile.right];
  if (!IsPlainLoad(kernel, left) || !IsPlainLoad(kernel, right) || left.staged) {
    return refuse("a factor is not loaded as it lies");
  }
  const Axis& sum = kernel.axes[tile.sum];
  if (sum.tile != kTileEdge || sum.vector != 1) {
    return refuse("'" + sum.name + "' takes a tile of " + std::to_string(kTileEdge));
  }
  if (CoefficientOf(left.index, tile.sum) != 1 || CoefficientOf(right.index, tile.columns) != 1 ||
      CoefficientOf(right.index, tile.sum) < 1) {
    return refuse("neighbours of the factors do not lie along '" + sum.name + "' and '" +
                  kernel.axes[tile.columns].name + "'");
  }
  std::optional<AxisId> rows;
  for (AxisId axis : AxesIn(free[tile.left] & ~free[tile.right])) {
    if (!rows || kernel.axes[*rows].tile == 1) rows = axis;
  }
  if (!rows || CoefficientOf(left.index, *rows) < 1) return refuse("there is no axis of rows");
  tile.rows = *rows;
  for (AxisId axis : AxesIn(free[id])) {
    if (axis == tile.rows || axis == tile.columns || kernel.axes[axis].tile == 1) continue;
    return refuse("'" + kernel.axes[axis].name + "' has a tile as well");
  }
  tile.tall = Tiles(kernel.axes[tile.rows]);
  tile.wide = Tiles(kernel.axes[tile.columns]);
  if (tile.tall * tile.wide > kMaxSumTiles) {
    return refuse("that takes more than " + std::to_string(kMaxSumTiles) + " tiles of sums");
  }
  return tile;
}

}  // namespace l3c::l0
