// The kernels that calibration times, and the shapes at which it does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l0/kernel.h"

namespace l3c::cost {

// Of a product [m, n] over k: which factor is stored with k last.
//   ab   y = a·b     a [m, k], b [k, n]   a layer forward
//   atb  y = aᵀ·b    a [k, m], b [k, n]   the gradient of a weight
//   abt  y = a·bᵀ    a [m, k], b [n, k]   the gradient of an input
//   rows     y[i] = Σ_j x[i, j]           extents rows, columns, 1
//   columns  y[j] = Σ_i x[i, j]
//   map      y[i] = x[i]·c                extents elements, 1, 1
//   turned   y[j, i] = x[i, j]            extents rows, columns, 1
//   tiles    ab of pairs of bfloat16, k of them, made in tiles (layers/l0/tile_product.h)
enum class Probe : uint8_t { kAb, kAtb, kAbt, kRows, kColumns, kMap, kTurned, kTiles };
inline constexpr Probe kProbes[] = {Probe::kAb,      Probe::kAtb, Probe::kAbt,    Probe::kRows,
                                    Probe::kColumns, Probe::kMap, Probe::kTurned, Probe::kTiles};
constexpr bool IsProduct(Probe probe) { return probe <= Probe::kAbt || probe == Probe::kTiles; }
std::string_view ProbeName(Probe probe);  // "product ab", …
std::optional<Probe> FindProbe(std::string_view name);

using Extents = std::array<int64_t, 3>;  // of a product m, n, k

l0::Kernel ProbeKernel(Probe probe, const Extents& extents);
// The shapes of a calibration, coarse ones first: what is measured when time runs out half-way is
// spread over the whole range.
std::vector<Extents> ProbeShapes(Probe probe);

// y = op(op(… x …)) `length` times over `elements`, "recip", "sqrt", "exp2", "log2" or "sin"; "add"
// adds a constant every time, and "log2" takes exp2 of every logarithm, so that each has a value.
// The difference of two lengths is what the op costs.
l0::Kernel ChainKernel(std::string_view op, int length, int64_t elements);
// `chains` independent multiply-adds of a vector register each, `length` in a row; `pairs`: of
// bf16_dot.
l0::Kernel MultiplyAddKernel(int lanes, int chains, int64_t length, bool pairs = false);

// Which probe a kernel is like, whatever else it computes at the points of its product or sum:
// nothing for what is none, and for more than one product in a kernel. A product of pairs that is
// not made in tiles is like one of f32. What neither multiplies nor sums is like a map of as many
// bytes, or is turned, if it reads along another axis than it writes.
struct Likeness {
  Probe probe = Probe::kAb;
  Extents extents{};
};
std::optional<Likeness> ProbeLike(const l0::Kernel& kernel);

}  // namespace l3c::cost
