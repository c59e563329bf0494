// Normal draws of Philox, eight blocks at a time by AVX-512, to the bits of tensor::FillNormal:
// every lane does the same IEEE operations in the same order. Initialising ten million weights one
// by one takes half a second, most of it in divisions that wait for one another.
#pragma once

#include <cstdint>
#include <span>

namespace l3c::runtime {

bool HasVectorDraws();  // on this CPU

// Fills `out` with the draws of tensor::FillNormal(seed, stream, mean, deviation, …) from draw
// `first` on, a multiple of 32. Only where HasVectorDraws().
void FillNormalByVectors(uint64_t seed, uint64_t stream, uint64_t first, float mean,
                         float deviation, std::span<float> out);

}  // namespace l3c::runtime
