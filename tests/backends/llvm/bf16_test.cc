// Pairs of bfloat16 on every kind of CPU: by the instructions for them, by AVX2 and FMA, and by
// neither, with the same bits.
#include "layers/tensor/bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "backends/llvm/kernel_compiler.h"
#include "layers/l0/kernel_schedule.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

using testing::Buffers;
using testing::NewJit;
using testing::ParseOne;

constexpr const char* kPlain = "+sse2,-avx,-fma";
constexpr const char* kAvx2 = "+avx,+avx2,+fma,-avx512f";

std::string S(int64_t n) { return std::to_string(n); }

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool HasAvx512() { return __builtin_cpu_supports("avx512f") != 0; }

// "" is the host with all it has.
std::vector<std::string> FeatureSets() {
  std::vector<std::string> sets = {"", kPlain};
  if (HasAvx2()) sets.emplace_back(kAvx2);
  return sets;
}

// y = Σk of pairs, from matrices of any bits.
l0::Kernel Products(int64_t m, int64_t k, int64_t n) {
  return ParseOne("kernel products(a: in u32 [" + S(m) + ", " + S(k) + "], b: in u32 [" + S(k) +
                  ", " + S(n) + "], y: out f32 [" + S(m) + ", " + S(n) + "]) {\n  axis i : loop " +
                  S(m) + "\n  axis j : loop " + S(n) + "\n  axis k : reduce " + S(k) +
                  "\n  %0 = load a[" + S(k) + "*i + k]\n  %1 = load b[" + S(n) +
                  "*k + j]\n  %2 = bf16_dot %0, %1\n  %3 = reduce_add %2 over k\n  store y[" +
                  S(n) + "*i + j], %3\n}\n");
}

l0::Kernel Packing(int64_t n, int64_t lanes) {
  const std::string axis = lanes == 1 ? S(n) : S(n) + " tile " + S(lanes) + " vector " + S(lanes);
  return ParseOne("kernel packing(x: in f32 [" + S(2 * n) + "], y: out u32 [" + S(n) +
                  "]) {\n  axis i : loop " + axis + "\n  %0 = load x[i]\n  %1 = load x[i + " +
                  S(n) + "]\n  %2 = bf16_pair %0, %1\n  store y[i], %2\n}\n");
}

std::vector<uint32_t> AnyBits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> bits(count);
  for (uint32_t& word : bits) {
    word = random();
    // Every exponent would overflow most sums: half of the numbers are near one.
    if (random() % 2 == 0) word = (word & 0x807f807f) | 0x3f003f80;
  }
  return bits;
}

// Whether a NaN's payload is the same is left open.
void ExpectSameFloats(const float* x, const float* y, size_t count, const std::string& what) {
  for (size_t i = 0; i < count; ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i]))
        << what << " at " << i << ": " << x[i] << " and " << y[i];
  }
}

TEST(Bf16Code, PackingIsTheSameEverywhere) {
  constexpr int64_t kCount = 3000;
  std::vector<uint32_t> bits(2 * kCount);
  std::mt19937 random(5);
  for (uint32_t& word : bits) word = random();
  for (int64_t lanes : {1, 4, 8, 16}) {
    const l0::Kernel kernel = Packing(kCount, lanes);
    for (const std::string& features : FeatureSets()) {
      const auto jit = NewJit({.features = features});
      ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
      std::vector<uint32_t> packed(kCount);
      void* params[] = {bits.data(), packed.data()};
      jit->Find(kernel.name)(params, 0, 1);
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(packed[i], tensor::Bf16Pair(std::bit_cast<float>(bits[i]),
                                              std::bit_cast<float>(bits[i + kCount])))
            << lanes << " lanes, '" << features << "', " << bits[i] << " " << bits[i + kCount];
      }
    }
  }
}

// The sums are as their terms' order says, to the bit, by whatever instructions and in any tile.
TEST(Bf16Code, ProductsAreTheSameEverywhere) {
  struct Extents {
    int64_t m, k, n;
  };
  for (const auto& [m, k, n] : {Extents{13, 9, 50}, {1, 1, 1}, {7, 5, 10}, {30, 64, 67}}) {
    const l0::Kernel plain = Products(m, k, n);
    std::vector<uint32_t> a = AnyBits(static_cast<size_t>(m * k), 1);
    std::vector<uint32_t> b = AnyBits(static_cast<size_t>(k * n), 2);
    std::vector<float> expected(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float& sum = expected[static_cast<size_t>(i * n + j)];
        for (int64_t l = 0; l < k; ++l) {
          sum = tensor::Bf16Dot(sum, a[static_cast<size_t>(i * k + l)],
                                b[static_cast<size_t>(l * n + j)]);
        }
      }
    }
    for (const std::string& features : FeatureSets()) {
      const bool wide = features.empty() && HasAvx512();
      const l0::ScheduleTarget target{.vector_registers = wide ? 32 : 16,
                                      .lanes = wide                 ? 16
                                               : features == kPlain ? 4
                                                                    : 8};
      const auto schedules = l0::CandidateSchedules(plain, target);
      EXPECT_EQ(schedules[0].kernel_class, l0::KernelClass::kMatmul);
      for (size_t s = 0; s < std::min<size_t>(schedules.size(), 2); ++s) {
        const l0::Kernel kernel = l0::ApplySchedule(plain, schedules[s]);
        const auto jit = NewJit({.features = features});
        ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
        std::vector<float> y(expected.size() + 16, 77);
        void* params[] = {a.data(), b.data(), y.data()};
        jit->Find(kernel.name)(params, 0, l0::NumBlocks(kernel));
        ExpectSameFloats(expected.data(), y.data(), expected.size(),
                         schedules[s].name + " '" + features + "'");
        for (size_t i = expected.size(); i < y.size(); ++i) ASSERT_EQ(y[i], 77);
      }
    }
  }
}

// The interpreter sums products that it has rounded; in another order where lanes lie along the
// sum.
TEST(Bf16Code, AgreesWithTheInterpreter) {
  const auto kernel = [](const std::string& b) {
    return ParseOne(
        "kernel products(x: in f32 [12, 40], w: in f32 [40, 24], y: out f32 [12, 24]) "
        "{\n axis i : loop 12\n axis j : loop 24\n axis k : reduce 20\n"
        " %0 = load x[40*i + k]\n %1 = load x[40*i + k + 20]\n"
        " %2 = bf16_pair %0, %1\n %3 = load w[" +
        b + "]\n %4 = load w[" + b +
        " + 480]\n %5 = bf16_pair %3, %4\n %6 = bf16_dot %2, %5\n"
        " %7 = reduce_add %6 over k\n store y[24*i + j], %7\n}");
  };
  for (const char* b : {"24*k + j", "k + 20*j"}) {
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel(b))) {
      testing::ExpectAgreement(l0::ApplySchedule(kernel(b), schedule));
    }
  }
}

// Two blocks are transposed in registers for one store, at edges as well.
TEST(Bf16Code, TurnedPairsAgreeWithTheInterpreter) {
  const l0::Kernel kernel = ParseOne(R"(
kernel pairs(x: in f32 [74, 53], y: out u32 [53, 37]) {
    axis i : loop 53
    axis j : loop 37
    %0 = load x[i + 53*j]
    %1 = load x[i + 53*j + 1961]
    %2 = bf16_pair %0, %1
    store y[37*i + j], %2
})");
  for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel)) {
    testing::ExpectAgreement(l0::ApplySchedule(kernel, schedule));
  }
}

// Where the CPU has them, the inner loop is dot products, its sums in registers throughout.
TEST(Bf16Code, NoTileSpills) {
  const l0::Kernel plain = Products(48, 256, 256);
  const auto compiler = llvm_backend::KernelCompiler::Create(
      {.text = true,
       .features = "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16"});
  ASSERT_TRUE(compiler.ok());
  int checked = 0;
  for (const l0::Schedule& schedule : l0::CandidateSchedules(plain)) {
    if (!schedule.name.starts_with("tile")) continue;
    const l0::Kernel kernel = l0::ApplySchedule(plain, schedule);
    const auto modules = (*compiler)->Compile({&kernel, 1});
    ASSERT_TRUE(modules.ok());
    const std::string& assembly = (*modules)[0].assembly;
    EXPECT_NE(assembly.find("vdpbf16ps"), std::string::npos) << schedule.name;
    EXPECT_EQ(assembly.find("zmmword ptr [rsp"), std::string::npos) << schedule.name;
    size_t line = 0;
    while ((line = assembly.find("zmm", line)) != std::string::npos) {
      const size_t begin = assembly.rfind('\n', line) + 1;
      const std::string text = assembly.substr(begin, assembly.find('\n', line) - begin);
      EXPECT_EQ(text.find("(%rsp)"), std::string::npos) << schedule.name << ": " << text;
      line += 3;
    }
    ++checked;
  }
  EXPECT_GE(checked, 4);
}

}  // namespace
}  // namespace l3c
