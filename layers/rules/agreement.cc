#include "layers/rules/agreement.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "layers/tensor/shape_rules.h"

namespace l3c::rules {
namespace {

using tensor::Array;

std::string Short(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2g", value);
  return buffer;
}

bool SameBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Both finite, or the same infinity, or both NaN.
bool SameKind(double a, double b) {
  if (std::isfinite(a) && std::isfinite(b)) return true;
  return SameBits(a, b);
}

std::string At(const Array& array, size_t i) {
  return array.shape.empty() ? "" : "at element " + std::to_string(i) + ", ";
}

}  // namespace

std::optional<std::string> Disagreement(const Array& left, const Array& right,
                                        egraph::Numerics numerics, const Magnitude& magnitude) {
  if (left.dtype != right.dtype || left.shape != right.shape) {
    return "the left side is " + tensor::TypeToString(left.dtype, left.shape) +
           ", the right side " + tensor::TypeToString(right.dtype, right.shape);
  }
  for (size_t i = 0; i < left.ints.size(); ++i) {
    if (left.ints[i] != right.ints[i]) return At(left, i) + "they differ";
  }
  if (numerics == egraph::Numerics::kExact) {
    for (size_t i = 0; i < left.floats.size(); ++i) {
      if (!SameBits(left.floats[i], right.floats[i])) {
        return At(left, i) + "they differ in their bits";
      }
    }
    return std::nullopt;
  }
  double norm = 0;
  double error = 0;
  for (size_t i = 0; i < left.floats.size(); ++i) {
    if (!SameKind(left.floats[i], right.floats[i])) {
      return At(left, i) + "NaN or an infinity is on one side alone";
    }
    if (!std::isfinite(left.floats[i])) continue;
    norm += left.floats[i] * left.floats[i];
    const double e = left.floats[i] - right.floats[i];
    error += e * e;
  }
  const bool single = left.dtype == tensor::DType::kF32;
  const double relative = numerics == egraph::Numerics::kFast ? 1e-2 : single ? 1e-5 : 1e-10;
  const double unit = std::ldexp(1.0, single ? -23 : -52);
  const double rounding = unit * magnitude.largest * static_cast<double>(magnitude.elements) *
                          std::sqrt(static_cast<double>(left.floats.size()));
  if (std::sqrt(error) > relative * std::sqrt(norm) + rounding) {
    return "they differ by " + Short(norm > 0 ? std::sqrt(error / norm) : INFINITY) +
           " of the norm, where " + Short(relative) + " is allowed";
  }
  return std::nullopt;
}

}  // namespace l3c::rules
