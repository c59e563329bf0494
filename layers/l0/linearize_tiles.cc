#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {
namespace {

// How many of `count` points lie in a tile.
int64_t Within(int64_t count, int64_t tile) {
  return std::min(kTileEdge, count - tile * kTileEdge);
}

}  // namespace

std::optional<bool> Linearizer::SharesTileRegisters(const TileProduct& product) const {
  const AxisState& rows = state_[product.rows];
  const AxisState& columns = state_[product.columns];
  const int64_t tall = (rows.count + kTileEdge - 1) / kTileEdge;
  const bool rest = kernel_.axes[product.sum].extent % kTileEdge != 0;
  std::set<int64_t> heights;
  std::set<int64_t> widths;
  for (int64_t i = 0; i < tall; ++i) heights.insert(Within(rows.count, i));
  for (int64_t j = 0; j < columns.points; ++j) widths.insert(Within(columns.count, j));
  const auto shapes = static_cast<int64_t>(heights.size() + widths.size());
  const int64_t sums = tall * columns.points + (rest ? shapes : 0);
  if (sums + tall + columns.points <= kTileRegisters) return false;
  if (sums + shapes <= kTileRegisters) return true;
  return std::nullopt;
}

void Linearizer::EmitTiles(UopId id, const TileProduct& product) {
  const auto local = tile_locals_.try_emplace(
      id, static_cast<uint32_t>(kernel_.params.size() + out_.locals.size()));
  if (local.second) {
    out_.locals.push_back(
        {kernel_.uops[id].dtype, kTileEdge * kTileEdge * product.tall * product.wide});
  }
  const AxisState& rows = state_[product.rows];
  const AxisState& columns = state_[product.columns];
  const TileRange all = {0, (rows.count + kTileEdge - 1) / kTileEdge, 0, columns.points};
  if (const std::optional<bool> shared = SharesTileRegisters(product)) {
    return EmitTileRange(id, product, all, *shared);
  }
  for (int64_t i = 0; i < all.last_row; ++i) {
    for (int64_t j = 0; j < all.last_column; ++j) {
      EmitTileRange(id, product, {i, i + 1, j, j + 1}, false);
    }
  }
}

void Linearizer::EmitTileRange(UopId id, const TileProduct& product, const TileRange& range,
                               bool shared) {
  AxisState& rows = state_[product.rows];
  AxisState& columns = state_[product.columns];
  const AxisState& sum = state_[product.sum];
  const int64_t row = rows.point;
  const int64_t column = columns.point;
  const uint32_t local = tile_locals_.at(id);
  const int64_t row_elements = kTileEdge * product.wide;
  const DType dtype = kernel_.uops[id].dtype;

  std::map<std::pair<int64_t, int64_t>, Reg> sums;
  for (int64_t i = range.first_row; i < range.last_row; ++i) {
    for (int64_t j = range.first_column; j < range.last_column; ++j) {
      const Reg reg = NewTile(dtype, Within(rows.count, i), Within(columns.count, j));
      Assign(Op(UOp::kConst), reg);
      sums[{i, j}] = reg;
    }
  }
  // Registers of the factors, by which of them, tile (where each has its own) and shape.
  std::map<std::tuple<UopId, int64_t, int64_t, int64_t>, Reg> factors;
  const auto load = [&](UopId factor, int64_t tile, int64_t height, int64_t lanes) {
    const bool whole = sum.count == kTileEdge;
    const std::tuple key{factor, shared || !whole ? -1 : tile, height, lanes};
    const auto [at, added] = factors.try_emplace(key, kNoReg);
    if (added) at->second = NewTile(DType::kU32, height, lanes);
    LinearOp op = Op(UOp::kLoad);
    if (const Stage* stage = StageOf(factor)) {
      const Address address = StagedAddress(*stage);
      op.param = stage->local;
      op.a = address.reg;
      op.offset = address.offset;
      op.stride = kernel_.axes[product.columns].tile;
    } else {
      const Uop& uop = kernel_.uops[factor];
      op.param = uop.param;
      op.a = Prefix(uop.index);
      op.offset = KnownPart(uop.index);
      op.stride = CoefficientOf(uop.index, factor == product.left ? product.rows : product.sum);
    }
    Assign(op, at->second);
    return at->second;
  };
  const auto left = [&](int64_t i) {
    rows.point = i * kTileEdge;
    return load(product.left, i, Within(rows.count, i), sum.count);
  };
  const auto right = [&](int64_t j) {
    columns.point = j;
    return load(product.right, j, sum.count, Within(columns.count, j));
  };
  const auto multiply = [&](int64_t i, int64_t j, Reg a, Reg b) {
    LinearOp op = Op(UOp::kWmma);
    op.a = a;
    op.b = b;
    op.c = sums.at({i, j});
    Assign(op, op.c);
  };
  EmitAxis(product.sum, {kernel_.uops[id].src[0]}, [&] {
    const bool one_each = !shared && sum.count == kTileEdge;
    std::vector<Reg> across;
    for (int64_t j = range.first_column; one_each && j < range.last_column; ++j) {
      across.push_back(right(j));
    }
    for (int64_t i = range.first_row; i < range.last_row; ++i) {
      const Reg a = left(i);
      for (int64_t j = range.first_column; j < range.last_column; ++j) {
        multiply(i, j, a,
                 one_each ? across[static_cast<size_t>(j - range.first_column)] : right(j));
      }
    }
  });
  for (const auto& [tile, reg] : sums) {
    LinearOp op = Op(UOp::kStore);
    op.param = local;
    op.b = reg;
    op.offset = tile.first * kTileEdge * row_elements + tile.second * kTileEdge;
    op.stride = row_elements;
    Append(op);
  }
  rows.point = row;
  columns.point = column;
}

Reg Linearizer::TileElements(UopId id) {
  const TileProduct product = *TileProductOf(kernel_, id, free_);
  std::set<UopId>& done = chain_[LevelOf(free_[id])].tiles;
  if (done.insert(id).second) EmitTiles(id, product);
  LinearOp op = Op(UOp::kLoad);
  op.param = tile_locals_.at(id);
  op.offset = state_[product.rows].point * kTileEdge * product.wide +
              state_[product.columns].point * kTileEdge;
  op.active = ActiveLanes(free_[id]);
  return Append(op, kernel_.uops[id].dtype, kTileEdge);
}

}  // namespace l3c::l0
