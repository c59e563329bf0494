// Where an element of a tensor is found, as a function of a kernel's axes.
//
// A kernel computes a value at a point of its iteration space. A view (reshape, permute, expand,
// pad, slice, flip) of another value is then no work at all: the point is mapped, and the other
// value is computed or loaded there. An IndexMap holds one affine expression for each dimension of
// the value, and the guards that padding adds: where one fails, the element is zero.
//
//   y[i, j] = transpose(x)[i, j]         the map of y is (i, j), that of x is (j, i)
//   reshape [6, 4] → [24], at point i    x's map would be (i / 4, i % 4), which is not affine; but
//                                        x's row-major offset is i, and a load needs no more. Only
//                                        what takes the dimensions apart again (a transpose of x, a
//                                        reduction) asks for axis i to be cut into (h, l), i = 4h +
//                                        l
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/tensor/op.h"

namespace l3c::l0::lower {

struct IndexMap {
  std::vector<Affine> dims;  // one for each dimension of the value; empty when `flat` is set
  std::vector<Guard> guards;
  std::optional<Affine> flat;  // the row-major offset, where the dimensions are not affine
  bool operator==(const IndexMap&) const = default;
};

Affine Constant(int64_t value);
Affine AxisTerm(AxisId axis, int64_t coefficient = 1);
Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, int64_t factor);

// The axis that would have to be cut so that its inner part has `inner` iterations.
struct SplitRequest {
  AxisId axis = 0;
  int64_t inner = 1;
};

// The point of the operand (of shape `operand`) that element `at` of the view (of shape `result`)
// is. `extents` are those of the axes. Nothing when it is not affine; `split` is then set if
// cutting an axis would make it so.
std::optional<IndexMap> ThroughView(tensor::Op op, const tensor::Attributes& attr,
                                    const tensor::Shape& operand, const tensor::Shape& result,
                                    const IndexMap& at, std::span<const int64_t> extents,
                                    std::optional<SplitRequest>& split);

// The same map with its dimensions known. Nothing when they are not affine; see ThroughView.
std::optional<IndexMap> WithDims(const IndexMap& map, const tensor::Shape& shape,
                                 std::span<const int64_t> extents,
                                 std::optional<SplitRequest>& split);

// The row-major offset of the element.
Affine Flatten(const IndexMap& map, const tensor::Shape& shape);

// The axes that occur in the map, as bits (axes are below 64).
uint64_t AxesOfMap(const IndexMap& map);

// Whether the map visits every element of `shape` exactly once over the axes that occur in it.
bool IsBijective(const IndexMap& map, const tensor::Shape& shape, std::span<const int64_t> extents);

}  // namespace l3c::l0::lower
