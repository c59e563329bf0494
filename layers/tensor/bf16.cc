#include "layers/tensor/bf16.h"

#include <bit>
#include <cmath>
#include <limits>

namespace l3c::tensor {
namespace {

float Flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

float Low(uint32_t pair) { return Flushed(FromBf16(static_cast<uint16_t>(pair))); }
float High(uint32_t pair) { return Flushed(FromBf16(static_cast<uint16_t>(pair >> 16))); }

}  // namespace

uint16_t RoundToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(Flushed(x));
  if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x40);  // quiet
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint32_t Bf16Pair(float low, float high) {
  return RoundToBf16(low) | uint32_t{RoundToBf16(high)} << 16;
}

float Bf16Dot(float sum, uint32_t a, uint32_t b) {
  const float first = Flushed(std::fma(High(a), High(b), Flushed(sum)));
  return Flushed(std::fma(Low(a), Low(b), first));
}

float Bf16TileSum(float sum, std::span<const uint32_t> a, std::span<const uint32_t> b) {
  float low = 0;
  float high = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    low = Flushed(std::fma(Low(a[k]), Low(b[k]), low));
    high = Flushed(std::fma(High(a[k]), High(b[k]), high));
  }
  return Flushed(Flushed(sum) + Flushed(low + high));
}

double Bf16Product(uint32_t a, uint32_t b) {
  return static_cast<double>(Low(a)) * Low(b) + static_cast<double>(High(a)) * High(b);
}

}  // namespace l3c::tensor
