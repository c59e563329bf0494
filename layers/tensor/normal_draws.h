// Normal draws of Philox, eight blocks at a time by AVX-512, to the bits of PhiloxStream: every lane
// does the same IEEE operations in the same order. Initialising ten million weights one by one takes
// half a second, most of it in divisions that wait for one another.
#pragma once

#include <cstdint>
#include <span>

namespace l3c::tensor {

// Fills the front of `out` with mean + deviation * the normals of (seed, stream) from that of block
// `block` on, four of a block. How many were filled: a multiple of 32, 0 where the CPU has no
// AVX-512.
size_t FillNormalByVectors(uint64_t seed, uint64_t stream, uint64_t block, float mean,
                           float deviation, std::span<float> out);

}  // namespace l3c::tensor
