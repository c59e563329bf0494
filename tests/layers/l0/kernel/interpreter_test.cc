#include "layers/l0/uop_interpreter.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using testing::ParseOne;

TEST(UopInterpreter, Matmul) {
  const l0::Kernel kernel = ParseOne(R"(
kernel linear(x: in f32 [2, 3], w: in f32 [3, 2], y: out f32 [2, 2]) {
    axis i : grid 2 block 1
    axis j : loop 2
    axis k : reduce 3
    %0 = load x[3*i + k]
    %1 = load w[2*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    store y[2*i + j], %3
})");
  float x[] = {1, 2, 3, 4, 5, 6};
  float w[] = {1, 10, 2, 20, 3, 30};
  float y[4] = {-1, -1, -1, -1};
  void* params[] = {x, w, y};
  l0::Run(kernel, params, 1, 2);
  EXPECT_EQ((std::vector<float>(y, y + 4)), (std::vector<float>{-1, -1, 32, 320}));
  l0::Run(kernel, params, 0, 1);
  EXPECT_EQ((std::vector<float>(y, y + 4)), (std::vector<float>{14, 140, 32, 320}));
}

TEST(UopInterpreter, TwoReductionsOverOneAxis) {
  const l0::Kernel kernel = ParseOne(R"(
kernel variance(x: in f32 [2, 4], y: out f32 [2]) {
    axis i : grid 2 block 1
    axis k : reduce 4
    %0 = load x[4*i + k]
    %1 = reduce_add %0 over k
    %2 = const f32 -0.25
    %3 = mul %1, %2
    %4 = add %0, %3
    %5 = mul %4, %4
    %6 = reduce_add %5 over k
    store y[i], %6
})");
  float x[] = {1, 2, 3, 4, 10, 10, 10, 14};
  float y[2] = {};
  void* params[] = {x, y};
  l0::Run(kernel, params, 0, 2);
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], 12);
}

TEST(UopInterpreter, ScatterAddRunsInOrder) {
  const l0::Kernel kernel = ParseOne(R"(
kernel scatter(r: in i32 [4], d: in f32 [4], t: out f32 [3]) {
    axis v : loop 3
    axis i : loop 4
    %0 = const f32 0
    store t[v], %0
    %1 = load r[i]
    %2 = load d[i]
    store t[%1 of 3] += %2
})");
  int32_t r[] = {2, 0, 2, 7};  // the last is out of range and adds nothing
  float d[] = {1e8f, 3, -1e8f, 5};
  float t[3] = {};
  void* params[] = {r, d, t};
  l0::Run(kernel, params, 0, 1);
  EXPECT_EQ((std::vector<float>(t, t + 3)), (std::vector<float>{3, 0, 0}));
}

TEST(UopInterpreter, LoadsSeeTheValuesBeforeTheCall) {
  // m is stored before p, but p's value reads the old m.
  const l0::Kernel kernel = ParseOne(R"(
kernel momentum(g: in f32 [3], m: inout f32 [3], p: inout f32 [3]) {
    axis i : grid 3 block 2
    %0 = load g[i]
    %1 = load m[i]
    %2 = add %0, %1
    %3 = load p[i]
    %4 = add %3, %2
    store m[i], %2
    store p[i], %4
})");
  float g[] = {1, 2, 3};
  float m[] = {10, 20, 30};
  float p[] = {100, 200, 300};
  void* params[] = {g, m, p};
  l0::Run(kernel, params, 0, 2);
  EXPECT_EQ((std::vector<float>(m, m + 3)), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ((std::vector<float>(p, p + 3)), (std::vector<float>{111, 222, 333}));
}

TEST(UopInterpreter, RoundsToF32UnlessWidened) {
  const l0::Kernel kernel = ParseOne(R"(
kernel sums(x: in f32 [3], y: out f32 [1]) {
    axis k : reduce 3
    %0 = load x[k]
    %1 = reduce_add %0 over k
    store y[0], %1
})");
  float x[] = {16777216, 1, 1};
  float y = 0;
  void* params[] = {x, &y};
  l0::Run(kernel, params, 0, 1);
  EXPECT_EQ(y, 16777216);
  l0::Run(kernel, params, 0, 1, {.widen = true});
  EXPECT_EQ(y, 16777218);
}

TEST(UopInterpreter, PaddingReadsZero) {
  const l0::Kernel kernel = ParseOne(R"(
kernel window(x: in f32 [5], y: out f32 [5]) {
    axis i : grid 5 block 2
    axis d : reduce 3
    %0 = load x[i + d - 1] if 0 <= i + d - 1 < 5
    %1 = reduce_add %0 over d
    store y[i], %1
})");
  float x[] = {1, 2, 3, 4, 5};
  float y[5] = {};
  void* params[] = {x, y};
  l0::Run(kernel, params, 0, 3);
  EXPECT_EQ((std::vector<float>(y, y + 5)), (std::vector<float>{3, 6, 9, 12, 9}));
}

}  // namespace
}  // namespace l3c
