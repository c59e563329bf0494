// Shared by the tests of the tensor algebra: short names for ops, random arrays, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "layers/tensor/graph.h"
#include "layers/tensor/interpreter.h"
#include "layers/tensor/philox.h"

namespace l3c::tensor {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline NodeId Apply(Graph& graph, std::string_view op, std::vector<NodeId> inputs,
                    std::vector<int64_t> ints = {}, std::string name = {}) {
  Attributes attr;
  attr.ints = std::move(ints);
  return graph.Add(FindOp(op).value(), std::move(inputs), std::move(attr), std::move(name));
}

inline Array RandomArray(PhiloxStream& random, DType dtype, Shape shape) {
  Array array = Array::Zeros(dtype, std::move(shape));
  for (double& value : array.floats) value = random.NextNormal();
  return array;
}

inline Array F32(Shape shape, std::vector<double> values) {
  return Array::Floats(DType::kF32, std::move(shape), std::move(values));
}
inline Array F64(Shape shape, std::vector<double> values) {
  return Array::Floats(DType::kF64, std::move(shape), std::move(values));
}

// |a - b| / |b| in the 2-norm; the plain norm of a where b is zero.
inline double NormError(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return kInf;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// Equal bits, but for the sign and payload of a NaN.
inline bool Same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

inline void ExpectSame(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(Same(got[i], want[i])) << "element " << i << ": " << got[i] << ", not " << want[i];
  }
}

// The message of the ShapeError that `action` must throw.
template <typename Action>
std::string ErrorOf(Action action) {
  try {
    action();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace l3c::tensor
