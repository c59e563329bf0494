#include "backends/llvm/jit.h"

#include <gtest/gtest.h>

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
         "  axis i : grid " + s(m) + " block " + s(block) + " tile " + s(tile_i) + "\n" +
         "  axis j : loop " + s(n) + " tile " + s(tile_j) + " vector " + s(vector) + "\n" +
         "  axis k : reduce " + s(k) + " tile " + s(tile_k) + "\n" +
         "  %0 = load x[" + s(k) + "*i + k]\n  %1 = load w[" + s(n) + "*k + j]\n"
         "  %2 = mul %0, %1\n  %3 = reduce_add %2 over k\n  %4 = load b[j]\n"
         "  %5 = add %3, %4\n  store y[" + s(n) + "*i + j], %5\n}\n";
}

TEST(Jit, ElementwiseAndMatmul) {
  ExpectAgreement(ParseOne(Linear(128, 784, 256, 12, 6, 64, 16)));
}

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

}  // namespace
}  // namespace l3c
