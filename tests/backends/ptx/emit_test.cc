// What kernels compute as PTX.
#include "backends/ptx/emit_ptx.h"

#include <cmath>
#include <limits>

#include "layers/tensor/bf16.h"
#include "tests/backends/ptx/example_kernels.h"
#include "tests/backends/ptx/ptx_runner.h"

namespace l3c {
namespace {

using testing::ParseOne;

TEST(Ptx, ExamplesAgreeUnderEverySchedule) {
  for (const std::string& text : testing::ExampleKernels()) {
    testing::ExpectSchedulesAgree(ParseOne(text));
    if (HasFailure()) return;
  }
}

TEST(Ptx, NeighboursAreLoadedAndStoredTogether) {
  const l0::Kernel kernel = ParseOne(R"(kernel twice(x: in f32 [64], y: out f32 [64]) {
    launch sm_80 grid 1 block 1, 1, 256
    axis i : grid 64 block 4 tile 4 vector 4
    %0 = load x[i]
    %1 = add %0, %0
    store y[i], %1
})");
  const std::string text = testing::TextOf(kernel);
  EXPECT_NE(text.find("ld.global.v4.f32"), std::string::npos) << text;
  EXPECT_NE(text.find("st.global.v4.f32"), std::string::npos) << text;
  testing::ExpectPtxAgrees(kernel, 0);
}

// Sums and products are rounded one by one, as everywhere; nothing is left to ptxas to fuse.
TEST(Ptx, EveryOperationSaysHowItRounds) {
  for (const std::string& text : testing::ExampleKernels()) {
    const l0::Kernel kernel = ParseOne(text);
    const auto schedule = l0::CandidateSchedules(kernel, testing::kGpu).front();
    const std::string ptx = testing::TextOf(l0::ApplySchedule(kernel, schedule));
    for (const char* loose : {"add.f32", "mul.f32", "sub.f32", "mad.f32", "div.full"}) {
      EXPECT_EQ(ptx.find(loose), std::string::npos) << ptx;
    }
  }
}

constexpr const char* kFunctions =
    R"(kernel functions(x: in f32 [400], e: out f32 [400], l: out f32 [400], s: out f32 [400], r: out f32 [400], q: out f32 [400]) {
    launch sm_80 grid 2 block 1, 1, 256
    axis i : grid 400 block 1
    %0 = load x[i]
    %1 = exp2 %0
    %2 = log2 %0
    %3 = sin %0
    %4 = reciprocal %0
    %5 = sqrt %0
    store e[i], %1
    store l[i], %2
    store s[i], %3
    store r[i], %4
    store q[i], %5
})";

// Largest distance in units in the last place, over inputs of every magnitude.
TEST(Ptx, FunctionsAreAsNearAsTheyAreOnACpu) {
  const l0::Kernel kernel = ParseOne(kFunctions);
  testing::Buffers buffers(kernel, 1);
  const size_t count = buffers.Count(0);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> mantissa(1, 2);
  float* x = buffers.Data<float>(0);
  for (size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(i % 250) - 140;
    x[i] = std::ldexp(mantissa(random), std::min(exponent, 126)) * (i % 3 == 0 ? -1.0f : 1.0f);
  }
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0,
                           -0.0f,
                           inf,
                           -inf,
                           std::nanf(""),
                           1,
                           -1,
                           0x1p-149f,
                           128,
                           -150,
                           0x1.921fb6p+1f,
                           0x1p28f,
                           0x1.fffffep127f,
                           1e10f,
                           3e30f};
  std::copy(std::begin(special), std::end(special), x);
  const std::optional<std::string> fault = RunText(kernel, testing::TextOf(kernel), buffers);
  ASSERT_FALSE(fault) << *fault;
  const auto check = [&](size_t param, double (*function)(double), double ulps) {
    for (size_t i = 0; i < count; ++i) {
      const double exact = function(static_cast<double>(x[i]));
      const float found = buffers.Data<float>(param)[i];
      const auto nearest = static_cast<float>(exact);
      if (std::isnan(nearest) || std::isinf(nearest) || nearest == 0) {
        EXPECT_TRUE(std::isnan(nearest) ? std::isnan(found) : nearest == found)
            << kernel.params[param].name << "(" << x[i] << ") = " << found;
        continue;
      }
      const double ulp = std::nextafter(std::fabs(nearest), inf) - std::fabs(nearest);
      EXPECT_LE(std::fabs(static_cast<double>(found) - exact), ulps * ulp)
          << kernel.params[param].name << "(" << x[i] << ") = " << found;
    }
  };
  check(1, std::exp2, 1);
  check(2, std::log2, 2);
  check(3, std::sin, 1);
  check(4, [](double v) { return 1 / v; }, 0.5);
  check(5, [](double v) { return std::sqrt(v); }, 0.5);
}

TEST(Ptx, ApproximationsAreUsedWhereTheyAreAllowed) {
  const l0::Kernel kernel = ParseOne(kFunctions);
  const std::string exact = testing::TextOf(kernel);
  const std::string fast = testing::TextOf(kernel, {.approximate = true});
  for (const char* opcode : {"ex2.approx.f32", "lg2.approx.f32", "sin.approx.f32", "rcp.approx.f32",
                             "sqrt.approx.f32"}) {
    EXPECT_EQ(exact.find(opcode), std::string::npos);
    EXPECT_NE(fast.find(opcode), std::string::npos);
  }
  EXPECT_LT(fast.size(), exact.size() / 3);
}

TEST(Ptx, ModuloOfFloatsIsExact) {
  const l0::Kernel kernel =
      ParseOne(R"(kernel rest(x: in f32 [64], y: in f32 [64], z: out f32 [64]) {
    launch sm_80 grid 1 block 1, 1, 64
    axis i : grid 64 block 1
    %0 = load x[i]
    %1 = load y[i]
    %2 = mod %0, %1
    store z[i], %2
})");
  testing::Buffers buffers(kernel, 3);
  float* x = buffers.Data<float>(0);
  float* y = buffers.Data<float>(1);
  const float inf = std::numeric_limits<float>::infinity();
  const float pairs[][2] = {{5, 3},
                            {-5, 3},
                            {1e38f, 1e-38f},
                            {inf, 1},
                            {1, inf},
                            {1, 0},
                            {-0.0f, 2},
                            {3e30f, 7},
                            {7, 7},
                            {0x1p-149f, 3},
                            {1, 0x1p-149f},
                            {std::nanf(""), 1},
                            {1, std::nanf("")}};
  for (size_t i = 0; i < std::size(pairs); ++i) x[i] = pairs[i][0], y[i] = pairs[i][1];
  const std::optional<std::string> fault = RunText(kernel, testing::TextOf(kernel), buffers);
  ASSERT_FALSE(fault) << *fault;
  for (size_t i = 0; i < 64; ++i) {
    const float expected = std::fmod(x[i], y[i]);
    const float found = buffers.Data<float>(2)[i];
    EXPECT_TRUE(std::isnan(expected)
                    ? std::isnan(found)
                    : expected == found && std::signbit(expected) == std::signbit(found))
        << x[i] << " mod " << y[i] << " = " << found;
  }
}

TEST(Ptx, PairsOfBf16HaveTheBitsThatTheyHaveEverywhere) {
  const l0::Kernel kernel =
      ParseOne(R"(kernel pairs(x: in f32 [64], y: in f32 [64], p: out u32 [64], d: out f32 [64]) {
    launch sm_80 grid 1 block 1, 1, 64
    axis i : grid 64 block 1
    %0 = load x[i]
    %1 = load y[i]
    %2 = bf16_pair %0, %1
    %3 = bf16_dot %2, %2
    store p[i], %2
    store d[i], %3
})");
  testing::Buffers buffers(kernel, 3);
  buffers.Data<float>(0)[0] = 0x1p-130f;
  buffers.Data<float>(0)[1] = -0x1p-140f;
  const std::optional<std::string> fault = RunText(kernel, testing::TextOf(kernel), buffers);
  ASSERT_FALSE(fault) << *fault;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t pair = tensor::Bf16Pair(buffers.Data<float>(0)[i], buffers.Data<float>(1)[i]);
    EXPECT_EQ(buffers.Data<uint32_t>(2)[i], pair);
    EXPECT_EQ(buffers.Data<float>(3)[i], tensor::Bf16Dot(0, pair, pair));
  }
}

TEST(Ptx, SaysWhatItCannotDo) {
  l0::Kernel kernel = ParseOne(kFunctions);
  kernel.launch->arch = "sm_20";
  EXPECT_NE(ptx::EmitPtx(kernel).status().message().find("no PTX is made for 'sm_20'"),
            std::string::npos);
  kernel.launch.reset();
  EXPECT_NE(ptx::EmitPtx(kernel).status().message().find("has no launch"), std::string::npos);
  const l0::Kernel wide = ParseOne(R"(kernel wide(x: in f64 [4], y: out f64 [4]) {
    launch sm_80 grid 1 block 1, 1, 4
    axis i : grid 4 block 1
    %0 = load x[i]
    %1 = exp2 %0
    store y[i], %1
})");
  EXPECT_FALSE(ptx::EmitPtx(wide).ok());
}

}  // namespace
}  // namespace l3c
