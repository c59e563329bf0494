#include "layers/l0/lower/index_map.h"

#include <algorithm>

namespace l3c::l0::lower {

using tensor::Op;
using tensor::Shape;

Affine Constant(int64_t value) {
  Affine a;
  a.constant = value;
  return a;
}

Affine AxisTerm(AxisId axis, int64_t coefficient) {
  Affine a;
  if (coefficient != 0) a.terms.emplace_back(axis, coefficient);
  return a;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum;
  sum.constant = a.constant + b.constant;
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].first < b.terms[j].first)) {
      sum.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].first < a.terms[i].first) {
      sum.terms.push_back(b.terms[j++]);
    } else {
      const int64_t coefficient = a.terms[i].second + b.terms[j].second;
      if (coefficient != 0) sum.terms.emplace_back(a.terms[i].first, coefficient);
      ++i;
      ++j;
    }
  }
  return sum;
}

Affine operator*(const Affine& a, int64_t factor) {
  Affine product;
  if (factor == 0) return product;
  product.constant = a.constant * factor;
  for (const auto& [axis, coefficient] : a.terms) {
    product.terms.emplace_back(axis, coefficient * factor);
  }
  return product;
}

Affine Flatten(const IndexMap& map, const Shape& shape) {
  if (map.flat) return *map.flat;
  Affine flat;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    flat = flat + map.dims[d] * stride;
    stride *= shape[d];
  }
  return flat;
}

uint64_t AxesOfMap(const IndexMap& map) {
  uint64_t axes = 0;
  auto add = [&](const Affine& a) {
    for (const auto& [axis, coefficient] : a.terms) axes |= uint64_t{1} << axis;
  };
  for (const Affine& a : map.dims) add(a);
  if (map.flat) add(*map.flat);
  for (const Guard& g : map.guards) add(g.expression);
  return axes;
}

bool IsBijective(const IndexMap& map, const Shape& shape, std::span<const int64_t> extents) {
  if (!map.guards.empty()) return false;
  const Affine flat = Flatten(map, shape);
  if (flat.constant != 0) return false;
  std::vector<std::pair<int64_t, int64_t>> strides;  // (stride, extent)
  for (const auto& [axis, coefficient] : flat.terms) {
    if (coefficient <= 0) return false;
    if (extents[axis] != 1) strides.emplace_back(coefficient, extents[axis]);
  }
  std::sort(strides.begin(), strides.end());
  int64_t covered = 1;
  for (const auto& [stride, extent] : strides) {
    if (stride != covered) return false;
    covered *= extent;
  }
  return covered == tensor::NumElements(shape);
}

namespace {

// Writes a flat row-major offset as an index into `shape`. Digits are cut off from the inside.
std::optional<IndexMap> Delinearise(const Affine& flat, const Shape& shape,
                                    std::span<const int64_t> extents,
                                    std::optional<SplitRequest>& split) {
  IndexMap map;
  map.dims.resize(shape.size());
  Affine rest = flat;
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t extent = shape[d];
    if (extent == 1) continue;
    // rest = quotient · extent + digit, with 0 <= digit < extent.
    Affine quotient;
    Affine digit;
    int64_t high = 0;
    if (rest.constant < 0) return std::nullopt;
    digit.constant = rest.constant % extent;
    quotient.constant = rest.constant / extent;
    high = digit.constant;
    for (const auto& [axis, coefficient] : rest.terms) {
      if (coefficient % extent == 0) {
        quotient.terms.emplace_back(axis, coefficient / extent);
        continue;
      }
      if (coefficient < 0) return std::nullopt;
      digit.terms.emplace_back(axis, coefficient);
      high += coefficient * (extents[axis] - 1);
      const int64_t inner = extent / coefficient;
      if (coefficient * extents[axis] > extent) {
        if (extent % coefficient == 0 && extents[axis] % inner == 0 && inner > 1 &&
            inner < extents[axis]) {
          split = SplitRequest{axis, inner};
        }
        return std::nullopt;
      }
    }
    if (high >= extent) return std::nullopt;
    map.dims[d] = std::move(digit);
    rest = std::move(quotient);
  }
  // What is left belongs to dimensions of extent one.
  if (rest.constant != 0) return std::nullopt;
  for (const auto& [axis, coefficient] : rest.terms) {
    if (extents[axis] > 1) return std::nullopt;
  }
  return map;
}

// 0 <= index < extent, joined with a guard of the same axes where there is one.
void AddGuard(IndexMap& map, const Affine& index, int64_t extent) {
  Guard guard{index, -index.constant, extent - index.constant};
  guard.expression.constant = 0;
  for (Guard& known : map.guards) {
    if (known.expression != guard.expression) continue;
    known.low = std::max(known.low, guard.low);
    known.high = std::min(known.high, guard.high);
    return;
  }
  map.guards.push_back(std::move(guard));
}

}  // namespace

std::optional<IndexMap> WithDims(const IndexMap& map, const Shape& shape,
                                 std::span<const int64_t> extents,
                                 std::optional<SplitRequest>& split) {
  if (!map.flat) return map;
  auto with = Delinearise(*map.flat, shape, extents, split);
  if (with) with->guards = map.guards;
  return with;
}

std::optional<IndexMap> ThroughView(Op op, const tensor::Attributes& attr, const Shape& operand,
                                    const Shape& result, const IndexMap& from,
                                    std::span<const int64_t> extents,
                                    std::optional<SplitRequest>& split) {
  if (op == Op::kReshape) {
    const Affine flat = Flatten(from, result);
    std::optional<SplitRequest> not_needed;
    std::optional<IndexMap> map;
    // Where a guard fails an index is in no row-major order; but then nothing is loaded, so the
    // offset alone will do.
    if (from.guards.empty()) map = Delinearise(flat, operand, extents, not_needed);
    if (map) return map;
    IndexMap by_offset;
    by_offset.flat = flat;
    by_offset.guards = from.guards;
    return by_offset;
  }
  const auto known = WithDims(from, result, extents, split);
  if (!known) return std::nullopt;
  const IndexMap& at = *known;
  IndexMap map;
  map.dims.resize(operand.size());
  map.guards = at.guards;
  switch (op) {
    case Op::kPermute:
      for (size_t d = 0; d < result.size(); ++d) map.dims[attr.ints[d]] = at.dims[d];
      return map;
    case Op::kExpand: {
      const size_t lead = result.size() - operand.size();
      for (size_t d = 0; d < operand.size(); ++d) {
        if (operand[d] != 1) map.dims[d] = at.dims[lead + d];
      }
      return map;
    }
    case Op::kSlice:
      for (size_t d = 0; d < operand.size(); ++d) {
        map.dims[d] = at.dims[d] * attr.ints[3 * d + 2] + Constant(attr.ints[3 * d]);
      }
      return map;
    case Op::kFlip:
      map.dims = at.dims;
      for (int64_t d : attr.ints) map.dims[d] = at.dims[d] * -1 + Constant(operand[d] - 1);
      return map;
    case Op::kPad:
      for (size_t d = 0; d < operand.size(); ++d) {
        const int64_t before = attr.ints[2 * d];
        map.dims[d] = at.dims[d] + Constant(-before);
        if (before != 0 || attr.ints[2 * d + 1] != 0) {
          AddGuard(map, map.dims[d], operand[d]);
        }
      }
      return map;
    default:
      return std::nullopt;
  }
}

}  // namespace l3c::l0::lower
