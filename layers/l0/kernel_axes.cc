#include "layers/l0/kernel_axes.h"

#include <algorithm>

namespace l3c::l0 {
namespace {

// Products of two 64-bit numbers are added up before they are checked.
__extension__ typedef __int128 Wide;

}  // namespace

AxisSet AxesOf(const Affine& affine) {
  AxisSet set = 0;
  for (const auto& [axis, coefficient] : affine.terms) set |= AxisBit(axis);
  return set;
}

AxisSet AxesOf(const std::vector<Guard>& guards) {
  AxisSet set = 0;
  for (const Guard& guard : guards) set |= AxesOf(guard.expression);
  return set;
}

std::vector<AxisId> AxesIn(AxisSet set) {
  std::vector<AxisId> axes;
  for (AxisId axis = 0; axis < kMaxAxes; ++axis) {
    if (set & AxisBit(axis)) axes.push_back(axis);
  }
  return axes;
}

int64_t CoefficientOf(const Affine& affine, AxisId axis) {
  for (const auto& [term_axis, coefficient] : affine.terms) {
    if (term_axis == axis) return coefficient;
  }
  return 0;
}

std::vector<AxisSet> FreeAxes(const Kernel& kernel) {
  std::vector<AxisSet> free(kernel.uops.size(), 0);
  for (UopId id = 0; id < kernel.uops.size(); ++id) {
    const Uop& uop = kernel.uops[id];
    AxisSet set = 0;
    for (UopId operand : uop.src) set |= free[operand];
    if (uop.op == UOp::kRange) set |= AxisBit(uop.axis);
    if (uop.op == UOp::kLoad || uop.op == UOp::kStore) {
      set |= AxesOf(uop.index) | AxesOf(uop.guards);
    }
    if (uop.op == UOp::kReduce) {
      for (AxisId axis : uop.axes) set &= ~AxisBit(axis);
    }
    free[id] = set;
  }
  return free;
}

Interval Bounds(const Affine& affine, const std::vector<Axis>& axes) {
  constexpr Wide kLimit = Wide{1} << 62;
  Wide low = affine.constant;
  Wide high = affine.constant;
  for (const auto& [axis, coefficient] : affine.terms) {
    const int64_t extent = axes[axis].extent;
    const Wide reach = static_cast<Wide>(coefficient) * (extent > 0 ? extent - 1 : 0);
    (reach < 0 ? low : high) += reach;
    if (low < -kLimit || high > kLimit) return {false, 0, 0};
  }
  if (low < -kLimit || high > kLimit) return {false, 0, 0};
  return {true, static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

std::optional<AxisId> PackedAxis(const Kernel& kernel, const Uop& reduce, AxisSet free) {
  const auto has_lanes = [&](AxisId axis) { return kernel.axes[axis].vector > 1; };
  if (std::none_of(reduce.axes.begin(), reduce.axes.end(), has_lanes)) return std::nullopt;
  for (AxisId axis : AxesIn(free)) {
    if (has_lanes(axis)) return axis;
  }
  return std::nullopt;
}

}  // namespace l3c::l0
