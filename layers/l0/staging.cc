#include "layers/l0/staging.h"

#include <algorithm>
#include <utility>

namespace l3c::l0 {
namespace {

// Whether all that `root` reads stays as it is while the kernel runs, and no sum is in it.
bool ReadsOnly(const Kernel& kernel, UopId root) {
  std::vector<UopId> stack = {root};
  std::vector<bool> seen(kernel.uops.size(), false);
  while (!stack.empty()) {
    const UopId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Uop& uop = kernel.uops[id];
    if (uop.op == UOp::kReduce) return false;
    if (uop.op == UOp::kLoad && kernel.params[uop.param].access != Access::kIn) return false;
    stack.insert(stack.end(), uop.src.begin(), uop.src.end());
  }
  return true;
}

}  // namespace

std::optional<Staging> StagingOf(const Kernel& kernel, UopId id, const std::vector<AxisSet>& free,
                                 std::string* why) {
  const auto refuse = [&](std::string reason) -> std::optional<Staging> {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  if (!ReadsOnly(kernel, id)) return refuse("it has a reduction in it or reads what is written");
  Staging staging;
  int others = -1;  // loop and grid axes beside the tiled one, which is the innermost
  for (AxisId axis : AxesIn(free[id])) {
    const Axis& a = kernel.axes[axis];
    if (a.kind != AxisKind::kReduce) {
      if (others >= 0 && kernel.axes[staging.axis].tile > 1) {
        return refuse("'" + kernel.axes[staging.axis].name + "' has a tile as well");
      }
      if (others >= 0) staging.each = staging.axis;
      staging.axis = axis;
      ++others;
    } else if (a.vector > 1) {
      return refuse("'" + a.name + "' has lanes along the sum");
    } else {
      staging.reduce.push_back(axis);
    }
  }
  if (others < 0 || staging.reduce.empty()) {
    return refuse("a staged value has a loop or grid axis, and reduce axes");
  }
  const Axis& tile = kernel.axes[staging.axis];
  staging.whole_block = true;
  for (AxisId axis = staging.axis + 1; axis < kernel.axes.size(); ++axis) {
    const Axis& inner = kernel.axes[axis];
    if (inner.kind != AxisKind::kReduce && inner.extent > 1) staging.whole_block = false;
  }
  if (!staging.whole_block) staging.each.reset();
  if (staging.each) {
    bool again = false;
    for (AxisId axis = *staging.each + 1; axis < staging.axis; ++axis) {
      again |= kernel.axes[axis].kind == AxisKind::kLoop && kernel.axes[axis].extent > 1;
    }
    if (!again || tile.kind != AxisKind::kLoop) {
      return refuse("no loop inside of '" + kernel.axes[*staging.each].name + "' uses it again");
    }
  }
  staging.elements = tile.tile;
  if (staging.whole_block) {
    const int64_t block =
        tile.kind == AxisKind::kGrid ? std::min(tile.block, tile.extent) : tile.extent;
    staging.elements = (block + tile.tile - 1) / tile.tile * tile.tile;
  }
  const auto size = static_cast<int64_t>(tensor::SizeOf(kernel.uops[id].dtype));
  const int64_t most = kMaxStagedBytes / size;
  for (AxisId axis : staging.reduce) {
    const int64_t extent = kernel.axes[axis].extent;
    if (extent > 0 && staging.elements > most / extent) {
      return refuse("that takes more than " + std::to_string(kMaxStagedBytes) + " bytes");
    }
    staging.sum *= extent;
    staging.elements *= extent;
  }
  if (staging.elements > most) {
    return refuse("that takes more than " + std::to_string(kMaxStagedBytes) + " bytes");
  }
  staging.bytes = staging.elements * size;
  return staging;
}

}  // namespace l3c::l0
