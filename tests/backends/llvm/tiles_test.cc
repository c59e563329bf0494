// Sums of products of bfloat16 in tiles: by AMX, and op by op on CPUs of every kind, to the bits
// that the interpreter gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "backends/llvm/kernel_compiler.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_verify.h"
#include "layers/support/diagnostics.h"
#include "layers/support/tile_permission.h"
#include "layers/tensor/bf16.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c::tile_code {
namespace {

using testing::NewJit;
using testing::ParseOne;

constexpr const char* kAmx =
    "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16";

std::string S(int64_t n) { return std::to_string(n); }

// "" is the host with all it has.
std::vector<std::string> FeatureSets() {
  std::vector<std::string> sets = {"", "+sse2,-avx,-fma"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sets.emplace_back("+avx,+avx2,+fma,-avx512f");
  }
  if (__builtin_cpu_supports("avx512f")) {
    sets.emplace_back("+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq");
  }
  return sets;
}

struct Shape {
  int64_t m, k, n;
  int64_t rows = 32;
  int64_t columns = 32;
};

// y = act(Σk of pairs), from matrices of any bits; the epilogue adds a number to each column.
l0::Kernel Products(const Shape& s, bool staged = false) {
  const auto [m, k, n, rows, columns] = s;
  return ParseOne(
      "kernel products(a: in u32 [" + S(m) + ", " + S(k) + "], b: in u32 [" + S(k) + ", " + S(n) +
      "], c: in f32 [" + S(n) + "], y: out f32 [" + S(m) + ", " + S(n) + "]) {\n  axis " +
      (staged ? "j : grid " + S(n) + " block " + S(columns) + " tile " + S(columns) + " vector 16"
              : "i : grid " + S(m) + " block " + S(rows) + " tile " + S(rows)) +
      "\n  axis " +
      (staged ? "i : loop " + S(m) + " tile " + S(rows)
              : "j : loop " + S(n) + " tile " + S(columns) + " vector 16") +
      "\n  axis k : reduce " + S(k) + " tile 16\n  %0 = load a[" +
      (staged ? "k + " + S(k) + "*i" : S(k) + "*i + k") + "]\n  %1 = load b[" +
      (staged ? "j + " + S(n) + "*k" : S(n) + "*k + j") + "]" + (staged ? " staged" : "") +
      "\n  %2 = bf16_dot %0, %1\n  %3 = reduce_add %2 over k in tiles\n  %4 = load c[j]\n"
      "  %5 = add %3, %4\n  store y[" +
      (staged ? "j + " + S(n) + "*i" : S(n) + "*i + j") + "], %5\n}\n");
}

std::vector<uint32_t> AnyBits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> bits(count);
  for (uint32_t& word : bits) {
    word = random();
    const uint32_t kind = random() % 8;
    // Every exponent would overflow most sums: most of the numbers are near one; some are so small
    // that products and sums are denormal.
    if (kind < 5) word = (word & 0x807f807f) | 0x3f003f80;
    if (kind == 5) word = (word & 0x80ff80ff) | 0x1f801f00;
  }
  return bits;
}

// Whether a NaN's payload is the same is left open.
void ExpectSameFloats(const std::vector<float>& x, const std::vector<float>& y,
                      const std::string& what) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i]))
        << what << " at " << i << ": " << x[i] << " and " << y[i];
  }
}

const Shape kShapes[] = {{64, 32, 64},          // whole tiles
                         {33, 16, 47},          // edges of rows and columns
                         {48, 40, 32},          // a rest of the sum
                         {50, 56, 42},          // all of them
                         {1, 1, 1},             //
                         {7, 3, 10},            //
                         {17, 64, 10},          // a last layer
                         {32, 31, 96, 16, 48},  //
                         {50, 33, 80, 16, 64},  //
                         {96, 48, 20, 96, 16},
                         {5, 70, 130, 1, 32}};

TEST(TileCode, SumsAreTheSameEverywhere) {
  for (const Shape& shape : kShapes) {
    const auto [m, k, n, rows, columns] = shape;
    const std::string extents = S(m) + "x" + S(k) + "x" + S(n);
    std::vector<uint32_t> a = AnyBits(static_cast<size_t>(m * k), 1);
    std::vector<uint32_t> b = AnyBits(static_cast<size_t>(k * n), 2);
    std::vector<float> c(static_cast<size_t>(n), 0.25f);
    const auto size = static_cast<size_t>(m * n);
    std::vector<float> expected(size);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t begin = 0; begin < k; begin += 16) {
          const int64_t end = std::min(begin + 16, k);
          std::vector<uint32_t> column;
          for (int64_t l = begin; l < end; ++l) column.push_back(b[static_cast<size_t>(l * n + j)]);
          sum = tensor::Bf16TileSum(
              sum, std::span(a).subspan(static_cast<size_t>(i * k + begin), column.size()), column);
        }
        expected[static_cast<size_t>(i * n + j)] = sum + 0.25f;
      }
    }
    for (const bool staged : {false, true}) {
      const l0::Kernel kernel = Products(shape, staged);
      std::vector<float> y(size + 16, 77);
      void* params[] = {a.data(), b.data(), c.data(), y.data()};
      const auto check = [&](const std::string& what) {
        for (size_t i = size; i < y.size(); ++i) ASSERT_EQ(y[i], 77) << what;
        ExpectSameFloats(expected, std::vector<float>(y.begin(), y.begin() + m * n), what);
        std::fill(y.begin(), y.end(), 77.0f);
      };
      l0::Run(kernel, params, 0, l0::NumBlocks(kernel));
      check(extents + " interpreted");
      for (const std::string& features : FeatureSets()) {
        const auto jit = NewJit({.features = features});
        ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
        jit->Find(kernel.name)(params, 0, l0::NumBlocks(kernel));
        check(extents + " '" + features + "'" + (staged ? " staged" : ""));
      }
    }
  }
}

// One block after the other, or in any parts.
TEST(TileCode, BlocksMayRunApart) {
  const Shape shape = {100, 40, 70};
  const l0::Kernel kernel = Products(shape);
  std::vector<uint32_t> a = AnyBits(4000, 3);
  std::vector<uint32_t> b = AnyBits(2800, 4);
  std::vector<float> c(70, 1);
  std::vector<float> whole(7000);
  std::vector<float> parts(7000);
  const auto jit = NewJit({});
  ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
  void* params[] = {a.data(), b.data(), c.data(), whole.data()};
  jit->Find(kernel.name)(params, 0, l0::NumBlocks(kernel));
  params[3] = parts.data();
  for (int64_t block = l0::NumBlocks(kernel); block-- > 0;) {
    jit->Find(kernel.name)(params, block, block + 1);
  }
  ExpectSameFloats(whole, parts, "blocks");
}

TEST(TileCode, IsInstructionsOfAmxWhereTheTargetHasThemAlone) {
  for (const Shape& shape : {Shape{64, 64, 64}, Shape{50, 56, 42}}) {
    const l0::Kernel kernel = Products(shape);
    const auto assembly = [&](const std::string& features) {
      const auto compiler =
          llvm_backend::KernelCompiler::Create({.text = true, .features = features});
      EXPECT_TRUE(compiler.ok());
      const auto modules = (*compiler)->Compile({&kernel, 1});
      EXPECT_TRUE(modules.ok());
      return (*modules)[0].assembly;
    };
    const std::string with = assembly(kAmx);
    for (const char* instruction :
         {"ldtilecfg", "tilezero", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease"}) {
      EXPECT_NE(with.find(instruction), std::string::npos) << instruction;
    }
    const std::string without = assembly("+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq");
    EXPECT_EQ(without.find("tdpbf16ps"), std::string::npos);
    EXPECT_EQ(without.find("ldtilecfg"), std::string::npos);
  }
}

// Tiles of the factors are loaded once for all the sums that take them, where registers are enough.
TEST(TileCode, ConfiguresOnceWhereAllTilesAreWhole) {
  const auto count = [](const std::string& text, const std::string& word) {
    size_t found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  };
  const l0::Kernel kernel = Products({64, 64, 64});
  const auto compiler = llvm_backend::KernelCompiler::Create({.text = true, .features = kAmx});
  ASSERT_TRUE(compiler.ok());
  const auto modules = (*compiler)->Compile({&kernel, 1});
  ASSERT_TRUE(modules.ok());
  const std::string& assembly = (*modules)[0].assembly;
  EXPECT_EQ(count(assembly, "ldtilecfg"), 1u);
  EXPECT_EQ(count(assembly, "tdpbf16ps"), 4u);
  EXPECT_EQ(count(assembly, "tileloadd"), 4u);
}

TEST(TileCode, PermissionIsAskedForWhereTheCpuHasTiles) {
  EXPECT_EQ(NewJit({})->has_tiles(), support::TilesPermitted());
}

}  // namespace
}  // namespace l3c::tile_code
