#include "layers/tensor/philox.h"

#include <bit>
#include <cmath>
#include <numeric>

namespace l3c::tensor {
namespace {

// The shuffle's streams lie apart from those of initialisation, which count from 0.
constexpr uint64_t kShuffleStreams = uint64_t{1} << 63;

// Natural logarithm of a double in (0, 1], in IEEE basic operations. With x = m 2^e and m within
// sqrt(1/2)…sqrt(2), log m = 2 atanh(s) for s = (m - 1) / (m + 1), |s| < 0.1716; 11 terms of the
// series leave less than 2^-58.
double PortableLog(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = sum * s2 + 1.0 / n;
  return exponent * 0.69314718055994530942 + 2 * s * sum;
}

// sin(x) and cos(x) for x within 0…pi/4, by their series.
struct SinCos {
  double sin;
  double cos;
};
SinCos PortableSinCos(double x) {
  const double x2 = x * x;
  double s = 1;
  double c = 1;
  for (int n = 16; n >= 2; n -= 2) {
    s = 1 - s * x2 / (n * (n + 1));
    c = 1 - c * x2 / (n * (n - 1));
  }
  return {x * s, c};
}

// The point of the unit circle at `turns` of a full turn, turns in [0, 1).
SinCos PointAtTurns(double turns) {
  const double eighths = turns * 8;
  const int octant = static_cast<int>(eighths);
  const double within = eighths - octant;  // exact
  constexpr double kEighth = 0.78539816339744830962;
  // Odd octants count back from their upper end, so the argument stays within pi/4.
  const SinCos p = PortableSinCos((octant % 2 == 0 ? within : 1 - within) * kEighth);
  switch (octant) {
    case 0:
      return {p.sin, p.cos};
    case 1:
      return {p.cos, p.sin};
    case 2:
      return {p.cos, -p.sin};
    case 3:
      return {p.sin, -p.cos};
    case 4:
      return {-p.sin, -p.cos};
    case 5:
      return {-p.cos, -p.sin};
    case 6:
      return {-p.cos, p.sin};
    default:
      return {-p.sin, p.cos};
  }
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

namespace {

std::array<uint32_t, 4> Block(uint64_t seed, uint64_t stream, uint64_t block) {
  return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

}  // namespace

float UniformAt(uint64_t key, uint64_t i) { return UniformFromWord(Block(key, 0, i / 4)[i % 4]); }

uint32_t PhiloxStream::NextWord() {
  if (used_ == 4) {
    words_ = Block(seed_, stream_, block_++);
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t PhiloxStream::NextWord64() {
  const uint64_t low = NextWord();
  return low | uint64_t{NextWord()} << 32;
}

float PhiloxStream::NextNormal() {
  if (has_spare_) {
    has_spare_ = false;
    return static_cast<float>(spare_);
  }
  // (0, 1] and [0, 1), 32 bits each.
  const double u = (static_cast<double>(NextWord()) + 1) * 0x1p-32;
  const double turns = static_cast<double>(NextWord()) * 0x1p-32;
  const double radius = std::sqrt(-2 * PortableLog(u));
  const SinCos point = PointAtTurns(turns);
  spare_ = radius * point.sin;
  has_spare_ = true;
  return static_cast<float>(radius * point.cos);
}

// Rejects the last, incomplete run of n among the 2^64 words.
uint64_t PhiloxStream::NextBelow(uint64_t n) {
  const uint64_t incomplete = (uint64_t{0} - n) % n;  // 2^64 mod n
  for (;;) {
    const uint64_t word = NextWord64();
    if (word >= incomplete) return word % n;
  }
}

void FillUniform(uint64_t seed, uint64_t stream, float low, float high, std::span<float> out) {
  PhiloxStream random(seed, stream);
  for (float& value : out) value = low + (high - low) * random.NextUniform();
}

void FillNormal(uint64_t seed, uint64_t stream, float mean, float deviation, std::span<float> out) {
  PhiloxStream random(seed, stream);
  for (float& value : out) value = mean + deviation * random.NextNormal();
}

std::vector<uint32_t> ShuffledIndices(uint32_t n, uint64_t seed, uint64_t epoch) {
  std::vector<uint32_t> indices(n);
  std::iota(indices.begin(), indices.end(), 0u);
  PhiloxStream random(seed, kShuffleStreams | epoch);
  for (uint32_t i = n; i > 1; --i) {
    std::swap(indices[i - 1], indices[random.NextBelow(i)]);
  }
  return indices;
}

}  // namespace l3c::tensor
