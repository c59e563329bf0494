// EXP2, LOG2, SIN and the special values of the arithmetic, in compiled f32 code.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

using testing::NewJit;
using testing::ParseOne;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

// y = op(x) for all of x, in vectors of 16 lanes or one by one. `raised`: the floating-point
// exceptions that it raises.
std::vector<float> Apply(const std::string& op, std::vector<float> x, bool vectors,
                         const std::string& features = "", int* raised = nullptr) {
  const std::string n = std::to_string(x.size());
  const l0::Kernel kernel =
      ParseOne("kernel apply(x: in f32 [" + n + "], y: out f32 [" + n + "]) {\n axis i : loop " +
               n + (vectors ? " tile 16 vector 16" : "") + "\n %0 = load x[i]\n %1 = " + op +
               " %0\n store y[i], %1\n}\n");
  const auto jit = NewJit({.threads = 1, .features = features});
  const absl::Status status = jit->Compile({&kernel, 1});
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> y(x.size());
  void* params[] = {x.data(), y.data()};
  std::feclearexcept(FE_ALL_EXCEPT);
  jit->Find("apply")(params, 0, 1);
  if (raised != nullptr) *raised = std::fetestexcept(FE_ALL_EXCEPT);
  return y;
}

// Distance in units of the last place of the f32 nearest to the exact value.
double Ulps(float value, long double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isinf(nearest) || std::isinf(value)) return nearest == value ? 0 : 1e9;
  int exponent = 0;
  std::frexp(nearest, &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return static_cast<double>(std::abs(value - exact) / ulp);
}

std::vector<float> Spread(float low, float high, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> x(count);
  for (float& v : x) v = uniform(random);
  return x;
}

// Every exponent: floats of random bits.
std::vector<float> Bits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x;
  while (x.size() < count) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) x.push_back(value);
  }
  return x;
}

void ExpectUlps(const std::string& op, const std::vector<float>& x,
                long double (*exact)(long double), double limit) {
  const std::vector<float> y = Apply(op, x, true);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = Ulps(y[i], exact(x[i]));
    if (error > worst) {
      worst = error;
      at = x[i];
    }
  }
  EXPECT_LE(worst, limit) << op << " at " << at;
  const std::vector<float> scalar = Apply(op, x, false);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(scalar[i]))
        << op << "(" << x[i] << ") depends on the schedule";
  }
}

long double Exp2(long double x) { return std::exp2(x); }
long double Log2(long double x) { return std::log2(x); }
long double Sin(long double x) { return std::sin(x); }

TEST(Transcendental, Exp2) {
  ExpectUlps("exp2", Spread(-151, 129, 200000, 1), Exp2, 1.0);
  ExpectUlps("exp2", Spread(-1, 1, 200000, 2), Exp2, 1.0);
  ExpectUlps("exp2", Spread(-150, -125, 50000, 3), Exp2, 1.0);
}

TEST(Transcendental, Exp2Special) {
  const std::vector<float> x = {0,    -0.0f, kInf,  -kInf, kNan, 128,     1000, -149,
                                -150, -151,  -1e9f, 1e9f,  127,  -126.5f, 1,    -1};
  for (bool vectors : {true, false}) {
    const std::vector<float> y = Apply("exp2", x, vectors);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], kInf);
    EXPECT_EQ(y[3], 0);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], kInf);
    EXPECT_EQ(y[6], kInf);
    EXPECT_EQ(y[7], kDenormal);
    EXPECT_EQ(y[8], 0);  // a tie, to even
    EXPECT_EQ(y[9], 0);
    EXPECT_EQ(y[10], 0);
    EXPECT_EQ(y[11], kInf);
    EXPECT_EQ(y[12], 0x1p127f);
    EXPECT_EQ(y[14], 2);
    EXPECT_EQ(y[15], 0.5f);
  }
}

TEST(Transcendental, Log2) {
  std::vector<float> x = Bits(200000, 1);
  for (float& v : x) v = std::abs(v);
  x.erase(std::remove(x.begin(), x.end(), 0.0f), x.end());
  ExpectUlps("log2", x, Log2, 2.0);
  ExpectUlps("log2", Spread(0.5f, 2, 200000, 2), Log2, 2.0);
  ExpectUlps("log2", Spread(0.999f, 1.001f, 50000, 3), Log2, 2.0);
}

TEST(Transcendental, Log2Special) {
  const std::vector<float> x = {1,  0,         -0.0f,     kInf, -kInf,     kNan,
                                -1, kDenormal, 0x1p-126f, 8,    -kDenormal};
  for (bool vectors : {true, false}) {
    const std::vector<float> y = Apply("log2", x, vectors);
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], -kInf);
    EXPECT_EQ(y[2], -kInf);
    EXPECT_EQ(y[3], kInf);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_TRUE(std::isnan(y[5]));
    EXPECT_TRUE(std::isnan(y[6]));
    EXPECT_EQ(y[7], -149);
    EXPECT_EQ(y[8], -126);
    EXPECT_EQ(y[9], 3);
    EXPECT_TRUE(std::isnan(y[10]));
  }
}

TEST(Transcendental, Sin) {
  ExpectUlps("sin", Spread(-10, 10, 200000, 1), Sin, 1.0);
  ExpectUlps("sin", Spread(-1e6f, 1e6f, 100000, 2), Sin, 1.0);
  ExpectUlps("sin", Spread(-3e8f, 3e8f, 50000, 3), Sin, 1.0);
  ExpectUlps("sin", Bits(20000, 4), Sin, 1.0);
}

TEST(Transcendental, SinSpecial) {
  const std::vector<float> x = {0, -0.0f, kInf, -kInf, kNan, kDenormal, -kDenormal};
  for (bool vectors : {true, false}) {
    const std::vector<float> y = Apply("sin", x, vectors);
    EXPECT_EQ(y[0], 0);
    EXPECT_FALSE(std::signbit(y[0]));
    EXPECT_TRUE(std::signbit(y[1]));
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], kDenormal);
    EXPECT_EQ(y[6], -kDenormal);
  }
}

// What rounds to zero does not underflow on its way: on Intel's processors that takes a hundred
// times as long, and half of the scores of causal attention are masked.
TEST(Transcendental, Exp2OfMaskedScoresDoesNotUnderflow) {
  std::vector<float> x(64, -kInf);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = -150 - static_cast<float>(i);
  for (const bool vectors : {true, false}) {
    for (const char* features : {"", "+sse4.2,+avx,+avx2,+fma"}) {
      int raised = 0;
      for (float y : Apply("exp2", x, vectors, features, &raised)) EXPECT_EQ(y, 0);
      EXPECT_EQ(raised & FE_UNDERFLOW, 0) << "vectors: " << vectors << ", features: " << features;
    }
  }
}

// Without AVX-512 exp2 scales by two factors instead of one instruction; the bits are the same when
// multiply-adds are.
TEST(Transcendental, Exp2IsTheSameOnNarrowMachines) {
  const std::vector<float> x = Spread(-151, 129, 20000, 5);
  const std::vector<float> host = Apply("exp2", x, true);
  const std::vector<float> narrow = Apply("exp2", x, true, "+sse4.2,+avx,+avx2,+fma");
  EXPECT_EQ(host, narrow);
}

float Binary(const std::string& op, float a, float b) {
  const l0::Kernel kernel = ParseOne(
      "kernel apply(x: in f32 [2], y: out f32 [1]) {\n %0 = load x[0]\n %1 = load x[1]\n %2 = " +
      op + " %0, %1\n store y[0], %2\n}\n");
  const auto jit = NewJit({.threads = 1});
  EXPECT_TRUE(jit->Compile({&kernel, 1}).ok());
  float x[] = {a, b};
  float y = 0;
  void* params[] = {x, &y};
  jit->Find("apply")(params, 0, 1);
  float again = 0;
  params[1] = &again;
  l0::Run(kernel, params, 0, 1);
  EXPECT_TRUE(std::bit_cast<uint32_t>(y) == std::bit_cast<uint32_t>(again) ||
              (std::isnan(y) && std::isnan(again)))
      << op << ": " << y << " and " << again;
  return y;
}

TEST(Arithmetic, MaxPropagatesNanAndOrdersZeros) {
  EXPECT_TRUE(std::isnan(Binary("max", kNan, 1)));
  EXPECT_TRUE(std::isnan(Binary("max", 1, kNan)));
  EXPECT_FALSE(std::signbit(Binary("max", -0.0f, 0)));
  EXPECT_FALSE(std::signbit(Binary("max", 0, -0.0f)));
  EXPECT_TRUE(std::signbit(Binary("max", -0.0f, -0.0f)));
  EXPECT_EQ(Binary("max", -kInf, 3), 3);
}

TEST(Arithmetic, ModHasTheSignOfTheDividend) {
  EXPECT_EQ(Binary("mod", -5.5f, 2), -1.5f);
  EXPECT_EQ(Binary("mod", 5.5f, -2), 1.5f);
  EXPECT_TRUE(std::isnan(Binary("mod", 1, 0)));
  EXPECT_EQ(Binary("mod", 1, kInf), 1);
}

TEST(Arithmetic, CastsSaturate) {
  const l0::Kernel kernel = ParseOne(R"(
kernel casts(x: in f32 [8], a: out i32 [8], b: out u8 [8], c: out bool [8], d: out u64 [8]) {
    axis i : loop 8 tile 8 vector 8
    %0 = load x[i]
    %1 = cast %0 to i32
    %2 = cast %0 to u8
    %3 = cast %0 to bool
    %4 = cast %0 to u64
    store a[i], %1
    store b[i], %2
    store c[i], %3
    store d[i], %4
})");
  const auto jit = NewJit({.threads = 1});
  ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
  float x[] = {1.9f, -1.9f, 1e20f, -1e20f, kNan, -0.0f, 300, kInf};
  int32_t a[8];
  uint8_t b[8];
  uint8_t c[8];
  uint64_t d[8];
  void* params[] = {x, a, b, c, d};
  for (bool compiled : {true, false}) {
    if (compiled) {
      jit->Find("casts")(params, 0, 1);
    } else {
      l0::Run(kernel, params, 0, 1);
    }
    EXPECT_EQ((std::vector<int32_t>(a, a + 8)),
              (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, 0, 300, INT32_MAX}));
    EXPECT_EQ((std::vector<uint8_t>(b, b + 8)),
              (std::vector<uint8_t>{1, 0, 255, 0, 0, 0, 255, 255}));
    EXPECT_EQ((std::vector<uint8_t>(c, c + 8)), (std::vector<uint8_t>{1, 1, 1, 1, 1, 0, 1, 1}));
    EXPECT_EQ(d[2], UINT64_MAX);
    EXPECT_EQ(d[7], UINT64_MAX);
    EXPECT_EQ(d[3], 0u);
  }
}

}  // namespace
}  // namespace l3c
