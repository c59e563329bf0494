#include "layers/l0/kernel_trial.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace l3c::l0 {
namespace {

double ElementAt(DType dtype, const std::byte* at) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == DType::kF64) {
    double value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  int64_t value = 0;
  std::memcpy(&value, at, std::min(tensor::SizeOf(dtype), sizeof value));
  return static_cast<double>(value);
}

}  // namespace

size_t BytesOf(const Param& param) {
  return static_cast<size_t>(tensor::NumElements(param.shape)) * tensor::SizeOf(param.dtype);
}

void FillRandom(const Param& param, std::mt19937_64& random, std::byte* to, size_t period) {
  const size_t size = tensor::SizeOf(param.dtype), bytes = BytesOf(param);
  const size_t fresh = std::min(bytes / size, period) * size;
  for (size_t at = 0; at < fresh; at += size) {
    // 53 bits are the same everywhere; the library's normal distribution need not be.
    const double real = static_cast<double>(random() >> 11) * 0x1p-51 - 2;
    const auto single = static_cast<float>(real);
    const uint64_t whole = random() % (param.dtype == DType::kBool ? 2 : 4);  // the low bytes
    const void* from = param.dtype == DType::kF32   ? static_cast<const void*>(&single)
                       : param.dtype == DType::kF64 ? static_cast<const void*>(&real)
                                                    : &whole;
    std::memcpy(to + at, from, size);
  }
  for (size_t at = fresh; at < bytes; at += fresh) {
    std::memcpy(to + at, to, std::min(fresh, bytes - at));
  }
}

Gap GapBetween(const Param& param, const std::byte* expected, const std::byte* found) {
  const size_t size = tensor::SizeOf(param.dtype);
  double norm = 0, apart = 0, largest = 0, worst = 0;
  for (size_t at = 0; at < BytesOf(param); at += size) {
    const double want = ElementAt(param.dtype, expected + at);
    const double have = ElementAt(param.dtype, found + at);
    if (std::isfinite(want)) {
      norm += want * want;
      largest = std::max(largest, std::abs(want));
    }
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    if (!std::isfinite(want) || !std::isfinite(have)) {
      return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    }
    apart += (want - have) * (want - have);
    worst = std::max(worst, std::abs(want - have));
  }
  if (worst == 0) return {};
  return {std::sqrt(apart) / std::sqrt(norm), worst / largest};  // by zero: infinite
}

}  // namespace l3c::l0
