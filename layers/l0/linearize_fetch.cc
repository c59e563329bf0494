#include <set>
#include <utility>
#include <vector>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/linearizer.h"

namespace l3c::l0 {
namespace {

// A usual line of the caches, and what of a usual first cache a panel may take (bytes).
constexpr int64_t kLineBytes = 64;
constexpr int64_t kNearBytes = 16 << 10;
// How many rows ahead of their use lines are asked for: 4 to 16 are as good, on a Sapphire Rapids.
constexpr int64_t kRowsAhead = 8;

}  // namespace

void Linearizer::FetchRows(const std::vector<UopId>& operands, AxisId axis) {
  if (state_[axis].base == kNoReg) return;
  std::vector<UopId> products;
  for (UopId id : operands) {
    if (IsProduct(kernel_.uops[id])) products.push_back(id);
  }
  for (UopId id = 0; id < kernel_.uops.size(); ++id) {
    const Uop& uop = kernel_.uops[id];
    if (uop.op != UOp::kLoad || StageOf(id) != nullptr || !Reaches(products, id)) continue;
    const int64_t lanes = LanesOf(free_[id]);
    if (IsDynamic(uop) || !uop.guards.empty() || lanes == 1 || LaneStride(uop.index) != 1) continue;
    const int64_t extent = kernel_.axes[axis].extent;
    const auto size = static_cast<int64_t>(tensor::SizeOf(uop.dtype));
    const int64_t step = CoefficientOf(uop.index, axis);
    const int64_t width = PointsIn(free_[id] & ~AxisBit(axis)) * lanes;
    // The processor goes on with what is contiguous by itself, and finds what is near.
    const int64_t line = kLineBytes / size;
    if (step <= width || step < line) continue;
    if (extent <= kRowsAhead || extent <= kNearBytes / (width * size)) continue;
    std::set<std::pair<Reg, int64_t>> lines;
    ForPoints(free_[id], [&] {
      LinearOp fetch = Op(UOp::kLoad);
      fetch.param = uop.param;
      fetch.a = Prefix(uop.index);
      fetch.offset = KnownPart(uop.index) + kRowsAhead * step;
      if (lines.insert({fetch.a, fetch.offset / line}).second) Append(fetch);
    });
  }
}

}  // namespace l3c::l0
