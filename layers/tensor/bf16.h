// Pairs of bfloat16 in a 32-bit word, and their product: what the ops bf16_pair and bf16_matmul
// mean to the bit, on every machine.
//
// A bfloat16 is the upper half of an f32: its range, 8 bits of significand. Rounding is to nearest,
// ties to even. A denormal counts as a zero of its sign, in operands, sums and results alike (as in
// VDPBF16PS and VCVTNEPS2BF16, after which all of this is written); a NaN stays one. A relative
// rounding error is thus at most 2⁻⁸, and a product of two rounded factors is exact in f32.
#pragma once

#include <cstdint>
#include <span>

namespace l3c::tensor {

uint16_t RoundToBf16(float x);
float FromBf16(uint16_t bits);

// `low` in the low half of the word.
uint32_t Bf16Pair(float low, float high);

// sum + high·high, rounded, + low·low, rounded: two fused multiply-adds.
float Bf16Dot(float sum, uint32_t a, uint32_t b);

// The same of up to kBf16TilePairs pairs at once, as a tile product does it: Σ low·low and Σ
// high·high, each from zero by fused multiply-adds, are added to one another and then to the sum;
// every step is rounded (TDPBF16PS of Intel's Software Developer's Manual, volume 2B).
inline constexpr int64_t kBf16TilePairs = 16;
float Bf16TileSum(float sum, std::span<const uint32_t> a, std::span<const uint32_t> b);

// low·low + high·high of the rounded factors, in f64; denormals as above.
double Bf16Product(uint32_t a, uint32_t b);

}  // namespace l3c::tensor
