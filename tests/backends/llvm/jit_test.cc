#include "backends/llvm/jit.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "layers/l0/kernel_schedule.h"
#include "tests/backends/llvm/kernel_runner.h"

namespace l3c {
namespace {

using testing::ExpectAgreement;
using testing::ParseOne;

std::string Linear(int m, int k, int n, int block, int tile_i, int tile_j, int vector,
                   int tile_k = 1) {
  const auto s = [](int x) { return std::to_string(x); };
  return "kernel linear(x: in f32 [" + s(m) + ", " + s(k) + "], w: in f32 [" + s(k) + ", " + s(n) +
         "], b: in f32 [" + s(n) + "], y: out f32 [" + s(m) + ", " + s(n) +
         "]) {\n"
         "  axis i : grid " +
         s(m) + " block " + s(block) + " tile " + s(tile_i) + "\n" + "  axis j : loop " + s(n) +
         " tile " + s(tile_j) + " vector " + s(vector) + "\n" + "  axis k : reduce " + s(k) +
         " tile " + s(tile_k) + "\n" + "  %0 = load x[" + s(k) + "*i + k]\n  %1 = load w[" + s(n) +
         "*k + j]\n"
         "  %2 = mul %0, %1\n  %3 = reduce_add %2 over k\n  %4 = load b[j]\n"
         "  %5 = add %3, %4\n  store y[" +
         s(n) + "*i + j], %5\n}\n";
}

TEST(Jit, ElementwiseAndMatmul) { ExpectAgreement(ParseOne(Linear(128, 784, 256, 12, 6, 64, 16))); }

TEST(Jit, MatmulEdges) {
  for (int m : {1, 7, 10, 127}) {
    for (int n : {1, 10, 13, 127}) {
      for (int k : {1, 10, 31}) {
        ExpectAgreement(ParseOne(Linear(m, k, n, 12, 6, 64, 16)));
        ExpectAgreement(ParseOne(Linear(m, k, n, 5, 2, 16, 16, 4)));
      }
    }
  }
}

TEST(Jit, LayerNormRow) {
  ExpectAgreement(ParseOne(R"(
kernel layer_norm(x: in f32 [33, 100], y: out f32 [33, 100], mean: out f32 [33]) {
    axis i : grid 33 block 4
    axis j : loop 100 tile 32 vector 16
    axis k : reduce 100 tile 64 vector 16
    %0 = load x[100*i + k]
    %1 = reduce_add %0 over k
    %2 = const f32 0.01
    %3 = mul %1, %2
    %4 = neg %3
    %5 = add %0, %4
    %6 = mul %5, %5
    %7 = reduce_add %6 over k
    %8 = mul %7, %2
    %9 = const f32 1e-5
    %10 = add %8, %9
    %11 = sqrt %10
    %12 = reciprocal %11
    %13 = load x[100*i + j]
    %14 = add %13, %4
    %15 = mul %14, %12
    store y[100*i + j], %15
    store mean[i], %3
})"));
}

// Σ over k with a and b read along each of their axes: plain, transposed a (weight gradients),
// transposed b (input gradients), by every candidate schedule.
TEST(Jit, MatmulForms) {
  const auto s = [](int x) { return std::to_string(x); };
  for (const auto& [m, k, n] :
       {std::array<int, 3>{31, 40, 50}, {1, 17, 10}, {16, 1, 16}, {13, 10, 64}}) {
    for (const std::string& a : {s(k) + "*i + k", "i + " + s(m) + "*k"}) {
      for (const std::string& b : {s(n) + "*k + j", "k + " + s(k) + "*j"}) {
        const l0::Kernel kernel = ParseOne(
            "kernel matmul(a: in f32 [" + s(m * k) + "], b: in f32 [" + s(k * n) +
            "], y: out f32 [" + s(m * n) + "]) {\n axis i : loop " + s(m) + "\n axis j : loop " +
            s(n) + "\n axis k : reduce " + s(k) + "\n %0 = load a[" + a + "]\n %1 = load b[" + b +
            "]\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[" + s(n) + "*i + j], %3\n}");
        for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel)) {
          SCOPED_TRACE(schedule.name);
          ExpectAgreement(l0::ApplySchedule(kernel, schedule));
        }
      }
    }
  }
}

// However many sums are packed, each is made in the same order.
TEST(Jit, PackedSumsHaveTheSameBits) {
  for (const int columns : {10, 32}) {
    const std::string n = std::to_string(columns);
    const l0::Kernel kernel = ParseOne("kernel dot(x: in f32 [31, 50], w: in f32 [" + n +
                                       ", 50], b: in f32 [" + n + "], y: out f32 [31, " + n +
                                       R"(]) {
    axis i : loop 31
    axis j : loop )" + n + R"(
    axis k : reduce 50
    %0 = load x[50*i + k]
    %1 = load w[50*j + k]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = reduce_max %1 over k
    %5 = load b[j]
    %6 = add %3, %5
    %7 = exp2 %6
    %8 = mul %7, %4
    store y[)" + n + "*i + j], %8\n}");
    std::optional<testing::Buffers> expected;
    int packed = 0;
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel)) {
      if (!schedule.name.starts_with("dot")) continue;
      SCOPED_TRACE(schedule.name);
      packed += schedule.name.ends_with("packed") ? 1 : 0;
      const l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
      ExpectAgreement(scheduled);
      const auto jit = testing::NewJit();
      ASSERT_TRUE(jit->Compile({&scheduled, 1}).ok());
      testing::Buffers found(kernel, 1);
      jit->Find(kernel.name)(found.Pointers().data(), 0, l0::NumBlocks(scheduled));
      if (!expected) expected = found;
      EXPECT_TRUE(found == *expected);
    }
    EXPECT_GE(packed, 3);
  }
}

TEST(Jit, SoftmaxOfShortRows) {
  for (const char* tile : {"", " tile 4"}) {
    ExpectAgreement(ParseOne(std::string(R"(
kernel softmax(x: in f32 [37, 10], y: out f32 [37, 10]) {
    axis i : grid 37 block 8)") +
                             tile + R"(
    axis j : loop 10 tile 16 vector 16
    axis k : reduce 10 tile 16 vector 16
    %0 = load x[10*i + k]
    %1 = reduce_max %0 over k
    %2 = neg %1
    %3 = add %0, %2
    %4 = exp2 %3
    %5 = reduce_add %4 over k
    %6 = reciprocal %5
    %7 = load x[10*i + j]
    %8 = add %7, %2
    %9 = exp2 %8
    %10 = mul %9, %6
    store y[10*i + j], %10
})"));
  }
}

TEST(Jit, ColumnSums) {
  ExpectAgreement(ParseOne(R"(
kernel columns(x: in f32 [19, 100], m: in f32 [19], y: out f32 [100], z: out f32 [100]) {
    axis j : grid 100 block 32 tile 32 vector 16
    axis i : reduce 19 tile 2
    %0 = load x[100*i + j]
    %1 = reduce_add %0 over i
    %2 = load m[i]
    %3 = mul %0, %2
    %4 = reduce_add %3 over i
    store y[j], %1
    store z[j], %4
})"));
}

TEST(Jit, UpdateInPlace) {
  ExpectAgreement(ParseOne(R"(
kernel momentum(x: in f32 [40, 30], d: in f32 [40, 50], m: inout f32 [30, 50], p: inout f32 [30, 50]) {
    axis i : grid 30 block 6 tile 6
    axis j : loop 50 tile 32 vector 16
    axis b : reduce 40
    %0 = load x[i + 30*b]
    %1 = load d[j + 50*b]
    %2 = mul %0, %1
    %3 = reduce_add %2 over b
    %4 = load m[50*i + j]
    %5 = const f32 0.9
    %6 = mul %4, %5
    %7 = add %6, %3
    %8 = load p[50*i + j]
    %9 = add %8, %7
    store m[50*i + j], %7
    store p[50*i + j], %9
})"));
}

TEST(Jit, GatherAndScatterAdd) {
  ExpectAgreement(ParseOne(R"(
kernel embed(r: in i32 [23], t: in f32 [12, 40], y: out f32 [23, 40]) {
    axis i : grid 23 block 4 tile 2
    axis c : loop 40 tile 16 vector 16
    %0 = load r[i]
    %1 = load t[40*%0 of 12 + c]
    store y[40*i + c], %1
})"));
  ExpectAgreement(ParseOne(R"(
kernel pick(r: in i32 [64], t: in f32 [12, 64], y: out f32 [64]) {
    axis i : grid 64 block 20 tile 16 vector 16
    %0 = load r[i]
    %1 = load t[64*%0 of 12 + i]
    store y[i], %1
})"));
  ExpectAgreement(ParseOne(R"(
kernel scatter(r: in i32 [23], d: in f32 [23, 40], w: in f32 [23], t: out f32 [12, 40]) {
    axis c : grid 40 block 16 tile 16 vector 16
    axis v : loop 12
    axis i : loop 23
    %0 = const f32 0
    store t[c + 40*v], %0
    %1 = load r[i]
    %2 = load d[c + 40*i]
    %3 = load w[i]
    %4 = mul %2, %3
    store t[40*%1 of 12 + c] += %4
})"));
}

TEST(Jit, OneHotAndPad) {
  ExpectAgreement(ParseOne(R"(
kernel one_hot(r: in i32 [9], y: out f32 [9, 10]) {
    axis i : grid 9 block 2
    axis c : loop 10 tile 16 vector 16
    %0 = load r[i]
    %1 = cast %0 to i64
    %2 = range c
    %3 = cmpne %1, %2
    %4 = const f32 0
    %5 = const f32 1
    %6 = where %3, %4, %5
    store y[10*i + c], %6
})"));
  ExpectAgreement(ParseOne(R"(
kernel conv(a: in f32 [9, 20], w: in f32 [3, 3], y: out f32 [9, 20]) {
    axis y : grid 9 block 2
    axis x : loop 20 tile 16 vector 16
    axis d : reduce 3
    axis e : reduce 3
    %0 = load a[20*y + x + 20*d + e - 21] if 0 <= y + d - 1 < 9, 0 <= x + e - 1 < 20
    %1 = load w[3*d + e]
    %2 = mul %0, %1
    %3 = reduce_add %2 over d, e
    store y[20*y + x], %3
})"));
}

TEST(Jit, Transposition) {
  for (const char* extents : {"32 48", "33 50", "16 16", "7 40"}) {
    const std::string text(extents);
    const std::string n = text.substr(0, text.find(' '));
    const std::string m = text.substr(text.find(' ') + 1);
    for (const char* dtype : {"f32", "u8", "i64"}) {
      ExpectAgreement(ParseOne("kernel transpose(x: in " + std::string(dtype) + " [" + m + ", " +
                               n + "], y: out " + dtype + " [" + n + ", " + m +
                               "]) {\n axis i : grid " + n + " block 16 tile 16\n axis j : loop " +
                               m + " tile 16 vector 16\n %0 = load x[i + " + n + "*j]\n store y[" +
                               m + "*i + j], %0\n}"),
                      0);
    }
  }
}

TEST(Jit, StoresUnderGuards) {
  ExpectAgreement(ParseOne(R"(
kernel pad(x: in f32 [7, 5], y: inout f32 [9, 8]) {
    axis i : grid 9 block 2
    axis j : loop 8 tile 8 vector 8
    %0 = load x[5*i + j - 6] if 0 <= i - 1 < 7, 0 <= j - 1 < 5
    store y[8*i + j], %0 if 1 <= i < 9, 0 <= j < 7
})"));
}

TEST(Jit, ScalarsAndEmptyKernels) {
  ExpectAgreement(ParseOne(R"(
kernel total(x: in f32 [1000], y: out f32 []) {
    axis k : reduce 1000 tile 64 vector 16
    %0 = load x[k]
    %1 = reduce_add %0 over k
    store y[0], %1
})"));
  ExpectAgreement(ParseOne(R"(
kernel nothing(x: in f32 [0, 4], y: out f32 [0, 4], z: out f32 [4]) {
    axis i : grid 4 block 4
    axis k : reduce 0
    %0 = load x[i + 4*k]
    %1 = reduce_max %0 over k
    store z[i], %1
    store y[i], %1 if 0 <= i < 0
})"));
}

TEST(Jit, DoublePrecisionRunsTheSameKernels) {
  ExpectAgreement(ParseOne(R"(
kernel wide(x: in f64 [50], y: out f64 [50]) {
    axis i : grid 50 block 16 tile 16 vector 8
    %0 = load x[i]
    %1 = exp2 %0
    %2 = sin %1
    %3 = mul %2, %2
    %4 = log2 %3
    %5 = mod %4, %0
    store y[i], %5
})"),
                  1e-14);
}

TEST(Jit, GridsOfTwoAxes) {
  ExpectAgreement(ParseOne(R"(
kernel batch(x: in f32 [5, 7, 33], y: out f32 [5, 7, 33]) {
    axis b : grid 5 block 2
    axis i : grid 7 block 3 tile 2
    axis j : loop 33 tile 16 vector 16
    %0 = load x[231*b + 33*i + j]
    %1 = neg %0
    store y[231*b + 33*i + j], %1
})"));
}

TEST(Jit, CodeDoesNotDependOnThreads) {
  std::vector<l0::Kernel> kernels;
  for (int i = 0; i < 6; ++i) {
    kernels.push_back(ParseOne(Linear(10 + i, 20, 30, 6, 3, 32, 16)));
    kernels.back().name += std::to_string(i);
  }
  const auto one = testing::NewJit({.threads = 1, .keep_text = true});
  const auto two = testing::NewJit({.threads = 2, .keep_text = true});
  ASSERT_TRUE(one->Compile(kernels).ok());
  ASSERT_TRUE(two->Compile(kernels).ok());
  for (const l0::Kernel& kernel : kernels) {
    EXPECT_FALSE(one->Assembly(kernel.name).empty());
    EXPECT_EQ(one->Assembly(kernel.name), two->Assembly(kernel.name));
    EXPECT_EQ(one->Ir(kernel.name), two->Ir(kernel.name));
  }
}

TEST(Jit, ErrorsNameTheKernel) {
  const auto jit = testing::NewJit({.threads = 1});
  l0::Kernel kernel = ParseOne(Linear(4, 4, 4, 2, 1, 1, 1));
  EXPECT_EQ(jit->Find("linear"), nullptr);
  ASSERT_TRUE(jit->Compile({&kernel, 1}).ok());
  EXPECT_NE(jit->Find("linear"), nullptr);
  EXPECT_NE(jit->Compile({&kernel, 1}).ToString().find("linear exists already"), std::string::npos);
  kernel.name = "tensor_core";
  kernel.uops[2].op = l0::UOp::kWmma;
  EXPECT_NE(jit->Compile({&kernel, 1}).ToString().find("tensor_core: WMMA is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace l3c
