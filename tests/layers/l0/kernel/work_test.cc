#include <gtest/gtest.h>

#include "layers/l0/kernel.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using testing::ParseOne;

TEST(KernelWork, CountsAMatmulWithBias) {
  const l0::Kernel kernel = ParseOne(R"(
kernel linear(x: in f32 [128, 784], w: in f32 [784, 256], b: in f32 [256], y: out f32 [128, 256]) {
    axis i : grid 128 block 12
    axis j : loop 256
    axis k : reduce 784
    %0 = load x[784*i + k]
    %1 = load w[256*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = load b[j]
    %5 = add %3, %4
    store y[256*i + j], %5
})");
  EXPECT_EQ(l0::NumBlocks(kernel), 11);
  const l0::KernelWork work = l0::CountWork(kernel);
  EXPECT_EQ(work.multiply_adds, 128.0 * 784 * 256);
  EXPECT_EQ(work.simple_flops, 128.0 * 256);
  EXPECT_EQ(work.transcendentals, 0);
  EXPECT_EQ(work.bytes_read, 4.0 * (128 * 784 + 784 * 256 + 256));
  EXPECT_EQ(work.bytes_written, 4.0 * 128 * 256);
}

// Of a product with a bias, along the sum: the product alone.
TEST(KernelWork, CountsWhatIsDoneAlongAnAxis) {
  const l0::Kernel kernel = ParseOne(R"(
kernel linear(x: in f32 [12, 32], w: in f32 [32, 64], b: in f32 [64], y: out f32 [12, 64]) {
    axis i : loop 12
    axis j : loop 64
    axis k : reduce 32
    %0 = load x[32*i + k]
    %1 = load w[64*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = load b[j]
    %5 = exp2 %4
    %6 = add %3, %5
    store y[64*i + j], %6
})");
  const l0::KernelWork sum = l0::CountWork(kernel, {2});
  EXPECT_EQ(sum.multiply_adds, 12.0 * 32 * 64);
  EXPECT_EQ(sum.simple_flops, 0);
  EXPECT_EQ(sum.transcendentals, 0);
  EXPECT_EQ(l0::CountWork(kernel, {0}).simple_flops, 12.0 * 64);
  EXPECT_EQ(l0::CountWork(kernel, {0}).transcendentals, 0);
  EXPECT_EQ(l0::CountWork(kernel, {0, 1}).transcendentals, 64);
}

TEST(KernelWork, CountsParametersOnce) {
  const l0::Kernel kernel = ParseOne(R"(
kernel rows(x: in f32 [8, 4], y: out f32 [8, 4]) {
    axis i : grid 8 block 1
    axis j : loop 4
    axis k : reduce 4
    %0 = load x[4*i + k]
    %1 = exp2 %0
    %2 = reduce_add %1 over k
    %3 = reciprocal %2
    %4 = load x[4*i + j]
    %5 = mul %4, %3
    store y[4*i + j], %5
})");
  const l0::KernelWork work = l0::CountWork(kernel);
  EXPECT_EQ(work.bytes_read, 4.0 * 32);
  EXPECT_EQ(work.transcendentals, 32);
  EXPECT_EQ(work.divides, 8);
  EXPECT_EQ(work.simple_flops, 64);
  EXPECT_EQ(work.multiply_adds, 0);
}

TEST(KernelWork, EmptyGridsHaveNoBlocks) {
  l0::Kernel kernel;
  EXPECT_EQ(l0::NumBlocks(kernel), 1);
  kernel.axes.push_back({"i", 0, l0::AxisKind::kGrid, 4});
  EXPECT_EQ(l0::NumBlocks(kernel), 0);
}

}  // namespace
}  // namespace l3c
