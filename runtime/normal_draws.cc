#include "runtime/normal_draws.h"

#include <algorithm>

#ifdef __x86_64__
// GCC 12 takes what the header leaves undefined on purpose for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace l3c::runtime {

#ifdef __x86_64__

namespace {

// A function that may use the instructions, whatever the CPU that the program is compiled for.
#define L3C_AVX512 __attribute__((target("avx512f")))

constexpr size_t kBlocks = 8;
constexpr size_t kDraws = 4 * kBlocks;

struct Pairs {
  __m512d cosines;
  __m512d sines;
};

// In the low halves of the lanes: the four words of a block each.
struct Words {
  __m512i word[4];
};

L3C_AVX512 Words PhiloxOf(uint64_t seed, uint64_t stream, uint64_t block) {
  const __m512i numbers = _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(block)),
                                           _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  const __m512i factor0 = _mm512_set1_epi64(0xD2511F53);
  const __m512i factor1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i c0 = numbers;
  __m512i c1 = _mm512_srli_epi64(numbers, 32);
  __m512i c2 = _mm512_set1_epi64(static_cast<int64_t>(stream & 0xffffffff));
  __m512i c3 = _mm512_set1_epi64(static_cast<int64_t>(stream >> 32));
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    // Products of the low halves; what is in the high ones of c1 and c3 is never read.
    const __m512i product0 = _mm512_mul_epu32(factor0, c0);
    const __m512i product1 = _mm512_mul_epu32(factor1, c2);
    c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product1, 32), c1),
                          _mm512_set1_epi64(static_cast<int64_t>(key0)));
    c1 = product1;
    c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product0, 32), c3),
                          _mm512_set1_epi64(static_cast<int64_t>(key1)));
    c3 = product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

L3C_AVX512 __m512d WordToDouble(__m512i word) {
  return _mm512_cvtepu32_pd(_mm512_cvtepi64_epi32(word));
}

// PortableLog() of layers/tensor/philox.cc.
L3C_AVX512 __m512d Log(__m512d x) {
  const __m512d one = _mm512_set1_pd(1);
  const __m512i bits = _mm512_castpd_si512(x);
  __m256i exponent =
      _mm256_sub_epi32(_mm512_cvtepi64_epi32(_mm512_srli_epi64(bits, 52)), _mm256_set1_epi32(1023));
  __m512d m = _mm512_castsi512_pd(
      _mm512_or_si512(_mm512_and_si512(bits, _mm512_set1_epi64(0x000fffffffffffff)),
                      _mm512_set1_epi64(0x3ff0000000000000)));
  const __mmask8 high = _mm512_cmp_pd_mask(m, _mm512_set1_pd(1.4142135623730951), _CMP_GT_OQ);
  m = _mm512_mask_mul_pd(m, high, m, _mm512_set1_pd(0.5));
  const __m512d power =
      _mm512_mask_add_pd(_mm512_cvtepi32_pd(exponent), high, _mm512_cvtepi32_pd(exponent), one);
  const __m512d s = _mm512_div_pd(_mm512_sub_pd(m, one), _mm512_add_pd(m, one));
  const __m512d s2 = _mm512_mul_pd(s, s);
  __m512d sum = _mm512_setzero_pd();
  for (int n = 21; n >= 1; n -= 2) {
    sum = _mm512_add_pd(_mm512_mul_pd(sum, s2), _mm512_set1_pd(1.0 / n));
  }
  return _mm512_add_pd(_mm512_mul_pd(power, _mm512_set1_pd(0.69314718055994530942)),
                       _mm512_mul_pd(_mm512_mul_pd(_mm512_set1_pd(2), s), sum));
}

// Which lanes hold a number of the set.
L3C_AVX512 __mmask8 In(int set, __m512i lanes) {
  return _mm512_test_epi64_mask(_mm512_sllv_epi64(_mm512_set1_epi64(1), lanes),
                                _mm512_set1_epi64(set));
}

L3C_AVX512 __m512d Negated(__m512d value, __mmask8 where) {
  const __m512i bits = _mm512_castpd_si512(value);
  return _mm512_castsi512_pd(
      _mm512_mask_xor_epi64(bits, where, bits, _mm512_set1_epi64(INT64_MIN)));
}

// PointAtTurns() of the same.
L3C_AVX512 Pairs Point(__m512d turns) {
  const __m512d one = _mm512_set1_pd(1);
  const __m512d eighths = _mm512_mul_pd(turns, _mm512_set1_pd(8));
  const __m256i octant = _mm512_cvttpd_epi32(eighths);
  const __m512d within = _mm512_sub_pd(eighths, _mm512_cvtepi32_pd(octant));
  const __m512i octants = _mm512_cvtepi32_epi64(octant);
  const __m512d x = _mm512_mul_pd(_mm512_mask_sub_pd(within, In(0b10101010, octants), one, within),
                                  _mm512_set1_pd(0.78539816339744830962));
  const __m512d x2 = _mm512_mul_pd(x, x);
  __m512d s = one;
  __m512d c = one;
  for (int n = 16; n >= 2; n -= 2) {
    s = _mm512_sub_pd(one, _mm512_div_pd(_mm512_mul_pd(s, x2), _mm512_set1_pd(n * (n + 1))));
    c = _mm512_sub_pd(one, _mm512_div_pd(_mm512_mul_pd(c, x2), _mm512_set1_pd(n * (n - 1))));
  }
  s = _mm512_mul_pd(x, s);
  const __mmask8 swapped = In(0b01100110, octants);
  return {Negated(_mm512_mask_mov_pd(c, swapped, s), In(0b00111100, octants)),
          Negated(_mm512_mask_mov_pd(s, swapped, c), In(0b11110000, octants))};
}

L3C_AVX512 __m512i Finished(__m512d radius, __m512d part, float mean, float deviation) {
  const __m256 draw = _mm512_cvtpd_ps(_mm512_mul_pd(radius, part));
  const __m256 value =
      _mm256_add_ps(_mm256_set1_ps(mean), _mm256_mul_ps(_mm256_set1_ps(deviation), draw));
  return _mm512_cvtepu32_epi64(_mm256_castps_si256(value));
}

// Of eight pairs of words: the first draw of each in the low half of its lane, the second in the
// high one.
L3C_AVX512 __m512i NormalsOf(__m512i first, __m512i second, float mean, float deviation) {
  const __m512d scale = _mm512_set1_pd(0x1p-32);
  const __m512d u = _mm512_mul_pd(_mm512_add_pd(WordToDouble(first), _mm512_set1_pd(1)), scale);
  const __m512d radius = _mm512_sqrt_pd(_mm512_mul_pd(_mm512_set1_pd(-2), Log(u)));
  const Pairs point = Point(_mm512_mul_pd(WordToDouble(second), scale));
  return _mm512_or_si512(Finished(radius, point.cosines, mean, deviation),
                         _mm512_slli_epi64(Finished(radius, point.sines, mean, deviation), 32));
}

L3C_AVX512 void FillBlocks(uint64_t seed, uint64_t stream, uint64_t block, float mean,
                           float deviation, float* out) {
  const Words words = PhiloxOf(seed, stream, block);
  // A lane has two draws: those of the first and of the second pair of a block take turns.
  const __m512i even = NormalsOf(words.word[0], words.word[1], mean, deviation);
  const __m512i odd = NormalsOf(words.word[2], words.word[3], mean, deviation);
  const __m512i low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
  const __m512i high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(even, low, odd));
  _mm512_storeu_si512(out + kDraws / 2, _mm512_permutex2var_epi64(even, high, odd));
}

#undef L3C_AVX512

}  // namespace

bool HasVectorDraws() { return __builtin_cpu_supports("avx512f"); }

void FillNormalByVectors(uint64_t seed, uint64_t stream, uint64_t first, float mean,
                         float deviation, std::span<float> out) {
  const uint64_t block = first / 4;
  size_t filled = 0;
  for (; filled + kDraws <= out.size(); filled += kDraws) {
    FillBlocks(seed, stream, block + filled / 4, mean, deviation, out.data() + filled);
  }
  if (filled == out.size()) return;
  float last[kDraws];
  FillBlocks(seed, stream, block + filled / 4, mean, deviation, last);
  std::copy_n(last, out.size() - filled, out.data() + filled);
}

#else

bool HasVectorDraws() { return false; }
void FillNormalByVectors(uint64_t, uint64_t, uint64_t, float, float, std::span<float>) {}

#endif

}  // namespace l3c::runtime
