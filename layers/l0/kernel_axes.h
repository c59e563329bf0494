// Which axes a value of a kernel depends on, as sets.
//
// A RANGE has its axis free; a load or a store the axes of its index and guards, and those of its
// operands; a REDUCE those of its operand without the axes it binds. A store runs once for every
// point of its free axes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/l0/kernel.h"

namespace l3c::l0 {

// A set of axes: bit a stands for axis a.
using AxisSet = uint64_t;
inline constexpr size_t kMaxAxes = 32;

constexpr AxisSet AxisBit(AxisId axis) { return AxisSet{1} << axis; }

// One set for each uop. Expects operands before users and axes below kMaxAxes.
std::vector<AxisSet> FreeAxes(const Kernel& kernel);

// The axes of an index and of guards.
AxisSet AxesOf(const Affine& affine);
AxisSet AxesOf(const std::vector<Guard>& guards);

// Members of `set`, ascending (that is, outermost first).
std::vector<AxisId> AxesIn(AxisSet set);

// The coefficient of `axis`, zero when it does not occur.
int64_t CoefficientOf(const Affine& affine, AxisId axis);

// The smallest and largest value of an affine expression over the whole extents of its axes.
// Nothing when an intermediate value does not fit 62 bits. Empty axes count as one point.
struct Interval {
  bool fits = true;
  int64_t low = 0;
  int64_t high = 0;
};
Interval Bounds(const Affine& affine, const std::vector<Axis>& axes);

// Where a reduction binds an axis with lanes and its result has lanes of another axis, it makes the
// sums of the latter one by one and packs them: that other axis. `free`: of the reduction.
std::optional<AxisId> PackedAxis(const Kernel& kernel, const Uop& reduce, AxisSet free);

// True for a load or store with a data-dependent index; its last operand is that index.
inline bool IsDynamic(const Uop& uop) {
  return (uop.op == UOp::kLoad || uop.op == UOp::kStore) && uop.dynamic_stride != 0;
}

}  // namespace l3c::l0
