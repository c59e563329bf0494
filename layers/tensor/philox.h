// Philox4x32-10, the counter-based random generator of Salmon, Moraes, Dror and Shaw, "Parallel
// random numbers: as easy as 1, 2, 3" (SC 2011). A draw is a pure function of a key and a counter,
// so a tensor of random numbers does not depend on the order, the threads or the machine that
// computes it, and a recomputed dropout mask is the same mask.
//
// Normal numbers use only additions, multiplications, divisions and square roots of IEEE doubles
// (no libm), and are therefore the same bits everywhere; compile with -ffp-contract=off.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace l3c::tensor {

// The 4 words at `counter` under `key` (10 rounds).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The top 24 bits of a word as a float in [0, 1).
inline float UniformFromWord(uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

// Element i of tensor_random(key): word i mod 4 of counter (i / 4 as two words, 0, 0).
float UniformAt(uint64_t key, uint64_t i);

// A sequence of draws. Streams with different (seed, stream) are independent: the seed is the key,
// the stream the upper half of the counter. Stream 0 of a seed is the sequence of tensor_random.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t NextWord();
  uint64_t NextWord64();
  float NextUniform() { return UniformFromWord(NextWord()); }  // [0, 1), 24 bits
  float NextNormal();  // mean 0, variance 1; Box-Muller in double, two words a pair of draws
  uint64_t NextBelow(uint64_t n);  // uniform in [0, n) without bias; n > 0

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;
  int used_ = 4;  // words of words_ that are spent
  std::array<uint32_t, 4> words_{};
  bool has_spare_ = false;
  double spare_ = 0;
};

// Parameter initialisation: fills `out` from (seed, stream).
void FillUniform(uint64_t seed, uint64_t stream, float low, float high, std::span<float> out);
void FillNormal(uint64_t seed, uint64_t stream, float mean, float deviation, std::span<float> out);

// A permutation of 0 … n-1 by Fisher and Yates, from (seed, epoch).
std::vector<uint32_t> ShuffledIndices(uint32_t n, uint64_t seed, uint64_t epoch);

}  // namespace l3c::tensor
