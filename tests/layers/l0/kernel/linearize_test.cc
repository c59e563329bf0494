#include "layers/l0/linearize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "layers/l0/kernel_schedule.h"
#include "layers/l0/uop_interpreter.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using l0::LinearKernel;
using l0::UOp;
using testing::ParseOne;

LinearKernel Linearize(const std::string& text, bool contract = true) {
  auto linear = l0::Linearize(ParseOne(text), {.contract = contract});
  EXPECT_TRUE(linear.ok()) << linear.status();
  return linear.ok() ? *linear : LinearKernel{};
}

size_t Count(const LinearKernel& kernel, UOp op) {
  return static_cast<size_t>(std::count_if(kernel.ops.begin(), kernel.ops.end(),
                                           [&](const l0::LinearOp& o) { return o.op == op; }));
}

size_t Fetches(const LinearKernel& kernel) {
  return static_cast<size_t>(std::count_if(
      kernel.ops.begin(), kernel.ops.end(),
      [](const l0::LinearOp& op) { return op.op == UOp::kLoad && op.dst == l0::kNoReg; }));
}

// The worked example of linearize.h.
TEST(Linearize, Example) {
  const LinearKernel kernel = Linearize(R"(
kernel sums(x: in f32 [8, 100], y: out f32 [8]) {
    axis i : grid 8 block 4
    axis k : reduce 100 tile 32 vector 16
    %0 = load x[100*i + k]
    %1 = reduce_add %0 over k
    store y[i], %1
})");
  EXPECT_EQ(l0::PrintLinear(kernel), R"(r2 = range r0 .. r1 step 1 : i64
  r3 = index 4*r2 : i64
  r4 = index r3 + 4 : i64
  r5 = range r3 .. r4 step 1 : i64
    r6 = index 100*r5 : i64
    r7 = const 0.0 : f32x16
    r8 = const 0.0 : f32x16
    r9 = range 0 .. 96 step 32 : i64
      r10 = index r6 + r9 : i64
      r11 = load x[r10] : f32x16
      r7 = add r7, r11 : f32x16
      r12 = load x[r10 + 16] : f32x16
      r8 = add r8, r12 : f32x16
    end
    r13 = load x[r6 + 96] active 4 : f32x16
    r14 = add r7, r13 : f32x16
    r7 = where active 4 ? r14 : r7 : f32x16
    r15 = add r7, r8 : f32x16
    r16 = reduce_add r15 : f32
    store y[r5], r16
  end
end
)");
}

// Of two columns and a row, sums of four products in four lanes: the columns' accumulators are
// folded together, and what is made of the sums has two lanes.
TEST(Linearize, SumsAlongLanesArePacked) {
  const LinearKernel kernel = Linearize(R"(
kernel dot(x: in f32 [8, 4], w: in f32 [2, 4], b: in f32 [2], y: out f32 [8, 2]) {
    axis i : grid 8 block 1
    axis j : loop 2 tile 2 vector 2
    axis k : reduce 4 tile 4 vector 4
    %0 = load x[4*i + k]
    %1 = load w[4*j + k]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    %4 = load b[j]
    %5 = add %3, %4
    store y[2*i + j], %5
})");
  EXPECT_EQ(l0::PrintLinear(kernel), R"(r2 = range r0 .. r1 step 1 : i64
  r3 = index r2 : i64
  r4 = index 2*r3 : i64
  r5 = index 4*r3 : i64
  r6 = load b[0] : f32x2
  r7 = const 0.0 : f32x4
  r8 = const 0.0 : f32x4
  r9 = load x[r5] : f32x4
  r10 = load w[0] : f32x4
  r7 = mulacc r9, r10, r7 : f32x4
  r11 = load w[4] : f32x4
  r8 = mulacc r9, r11, r8 : f32x4
  r12 = reduce_add r7, r8 of 4 : f32x4
  r13 = reduce_add r12 of 2 : f32x2
  r14 = add r13, r6 : f32x2
  store y[r4], r14
end
)");
}

constexpr const char* kLinear = R"(
kernel linear(x: in f32 [12, 32], w: in f32 [32, 64], y: out f32 [12, 64]) {
    axis i : grid 12 block 6 tile 6
    axis j : loop 64 tile 64 vector 16
    axis k : reduce 32
    %0 = load x[32*i + k]
    %1 = load w[64*k + j]
    %2 = mul %0, %1
    %3 = reduce_add %2 over k
    store y[64*i + j], %3
})";

TEST(Linearize, MatmulHoldsItsTileInRegisters) {
  const LinearKernel kernel = Linearize(kLinear);
  EXPECT_EQ(Count(kernel, UOp::kMulAcc), 24u);
  EXPECT_EQ(Count(kernel, UOp::kLoad), 6u + 4u);
  EXPECT_EQ(Count(kernel, UOp::kVectorize), 6u);
  EXPECT_EQ(Count(kernel, UOp::kStore), 24u);
  EXPECT_EQ(Count(kernel, UOp::kRange), 2u);  // blocks and k; a block is one tile
  EXPECT_EQ(Count(kernel, UOp::kMul), 0u);
}

// Four lines of w, a row of which is a kilobyte from the next; none of what is contiguous or
// copied, nor of a panel that the first cache holds.
TEST(Linearize, RowsThatLieApartAreFetchedAhead) {
  const auto product = [](int k, int n, const std::string& staged) {
    const std::string K = std::to_string(k);
    const std::string N = std::to_string(n);
    return Linearize("kernel linear(x: in f32 [6, " + K + "], w: in f32 [" + K + ", " + N +
                     "], y: out f32 [6, " + N + "]) {\n axis j : loop " + N +
                     " tile 64 vector 16\n axis i : loop 6 tile 3\n axis k : reduce " + K +
                     "\n %0 = load x[" + K + "*i + k]\n %1 = load w[" + N + "*k + j]" + staged +
                     "\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[" + N +
                     "*i + j], %3\n}\n");
  };
  const LinearKernel apart = product(784, 256, "");
  EXPECT_EQ(Fetches(apart), 4u);
  for (const l0::LinearOp& op : apart.ops) {
    if (op.op == UOp::kLoad && op.dst == l0::kNoReg) EXPECT_EQ(op.offset / 256, 8);
  }
  EXPECT_EQ(Fetches(product(784, 64, "")), 0u);
  EXPECT_EQ(Fetches(product(784, 256, " staged")), 0u);
  EXPECT_EQ(Fetches(product(32, 256, "")), 0u);
}

TEST(Linearize, WithoutContractionProductsRound) {
  const LinearKernel kernel = Linearize(kLinear, false);
  EXPECT_EQ(Count(kernel, UOp::kMulAcc), 0u);
  EXPECT_EQ(Count(kernel, UOp::kMul), 24u);
}

TEST(Linearize, ReductionsOverTheSameAxesShareALoop) {
  const LinearKernel kernel = Linearize(R"(
kernel moments(x: in f32 [8, 64], y: out f32 [8], z: out f32 [8]) {
    axis i : grid 8 block 8
    axis k : reduce 64 tile 16 vector 16
    %0 = load x[64*i + k]
    %1 = reduce_add %0 over k
    %2 = mul %0, %0
    %3 = reduce_add %2 over k
    store y[i], %1
    store z[i], %3
})");
  EXPECT_EQ(Count(kernel, UOp::kRange), 3u);  // blocks, i, k
  EXPECT_EQ(Count(kernel, UOp::kLoad), 1u);
}

TEST(Linearize, RowValuesAreComputedOnceARow) {
  const LinearKernel kernel = Linearize(R"(
kernel centre(x: in f32 [8, 64], y: out f32 [8, 64]) {
    axis i : grid 8 block 8
    axis j : loop 64 tile 16 vector 16
    axis k : reduce 64 tile 16 vector 16
    %0 = load x[64*i + k]
    %1 = reduce_add %0 over k
    %2 = sqrt %1
    %3 = load x[64*i + j]
    %4 = add %3, %2
    store y[64*i + j], %4
})");
  // The root stands before the loop over j: after the loop over k ends, before the next begins.
  size_t root = 0;
  size_t ranges_before = 0;
  for (size_t i = 0; i < kernel.ops.size(); ++i) {
    if (kernel.ops[i].op == UOp::kSqrt) root = i;
  }
  for (size_t i = 0; i < root; ++i) ranges_before += kernel.ops[i].op == UOp::kRange ? 1 : 0;
  EXPECT_EQ(ranges_before, 3u);
  EXPECT_EQ(Count(kernel, UOp::kRange), 4u);
}

TEST(Linearize, RunawayTilesAreRefused) {
  std::string text =
      "kernel wide(x: in f32 [2000, 2000], y: out f32 [2000, 2000]) {\n"
      " axis i : grid 2000 block 96 tile 31\n axis j : loop 2000 tile 33\n"
      " axis k : reduce 2000 tile 900\n %0 = load x[2000*i + k]\n %1 = load x[2000*k + j]\n"
      " %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[2000*i + j], %3\n}";
  l0::Kernel kernel = ParseOne("kernel t(y: out f32 [1]) {\n %0 = const f32 1\n store y[0], %0\n}");
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  kernel = *l0::ParseKernel(parser);
  const auto linear = l0::Linearize(kernel);
  ASSERT_FALSE(linear.ok());
  EXPECT_NE(linear.status().ToString().find("unrolls to more than"), std::string::npos);
}

// As deep as the verifier admits: a chain of operations, and one of reductions each of the last.
TEST(Linearize, DeepKernelsFitTheStack) {
  std::string chain =
      "kernel chain(x: in f32 [64], y: out f32 [64]) {\n axis i : loop 64 tile 16 vector 16\n"
      " %0 = load x[i]\n";
  for (int i = 0; i < 998; ++i) {
    chain += " %" + std::to_string(i + 1) + " = neg %" + std::to_string(i) + "\n";
  }
  std::string sums =
      "kernel sums(x: in f32 [64], y: out f32 [64]) {\n axis i : loop 64\n"
      " axis k : reduce 64\n %0 = load x[k]\n %1 = reduce_add %0 over k\n";
  for (int i = 1; i < 996; i += 2) {
    const std::string n = std::to_string(i);
    sums += " %" + std::to_string(i + 1) + " = mul %0, %" + n + "\n %" + std::to_string(i + 2) +
            " = reduce_add %" + std::to_string(i + 1) + " over k\n";
  }
  for (const std::string& text : {chain + " store y[i], %998\n}", sums + " store y[i], %997\n}"}) {
    const l0::Kernel kernel = ParseOne(text);
    ASSERT_TRUE(l0::Linearize(kernel).ok());
    std::vector<float> x(64, 0.015625f);
    std::vector<float> y(64);
    void* params[] = {x.data(), y.data()};
    l0::Run(kernel, params, 0, 1);
    EXPECT_NE(y[5], 0);
    EXPECT_FALSE(l0::CandidateSchedules(kernel).empty());
  }
  const support::SourceFile source("test.l0", chain +
                                                  " %999 = neg %998\n %1000 = neg %999\n"
                                                  " %1001 = neg %1000\n store y[i], %1001\n}");
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  const std::optional<l0::Kernel> kernel = l0::ParseKernel(parser);
  ASSERT_TRUE(kernel.has_value());
  EXPECT_FALSE(l0::VerifyKernel(*kernel, diagnostics));
  EXPECT_NE(diagnostics.Render(false).find("nest deeper than 1000"), std::string::npos);
}

// Numbers and operators of a kernel replaced at random: whatever the verifier lets through can be
// linearised, or is refused for its size.
TEST(Linearize, WhatTheVerifierAcceptsLinearises) {
  const std::vector<std::string> texts = {kLinear, R"(
kernel rows(x: in f32 [33, 100], r: in i32 [33], t: in f32 [9, 100], y: out f32 [33, 100], z: inout f32 [33]) {
    axis i : grid 33 block 4 tile 2
    axis j : loop 100 tile 32 vector 16
    axis k : reduce 100 tile 64 vector 16
    %0 = load x[100*i + k - 1] if 0 <= k - 1 < 99
    %1 = reduce_max %0 over k
    %2 = load r[i]
    %3 = load t[100*%2 of 9 + j]
    %4 = exp2 %3
    %5 = add %4, %1
    %6 = load z[i]
    %7 = add %6, %1
    store y[100*i + j], %5
    store z[i], %7
})"};
  const std::vector<std::string> numbers = {
      "0", "1", "2", "3", "7", "16", "64", "99", "1000", "5000", "4611686018427387904"};
  std::mt19937 random(7);
  const auto pick = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = texts[pick(texts.size())];
    for (size_t edits = 1 + pick(2); edits > 0; --edits) {
      std::vector<size_t> digits;
      for (size_t i = 1; i < text.size(); ++i) {
        const bool begins =
            std::isdigit(text[i]) && !std::isalnum(text[i - 1]) && text[i - 1] != '%';
        if (begins) digits.push_back(i);
      }
      const size_t at = digits[pick(digits.size())];
      size_t end = at;
      while (end < text.size() && std::isdigit(text[end])) ++end;
      text.replace(at, end - at, numbers[pick(numbers.size())]);
    }
    const support::SourceFile source("test.l0", text);
    support::Diagnostics diagnostics(&source);
    support::ParserBase parser(source, diagnostics);
    const std::optional<l0::Kernel> kernel = l0::ParseKernel(parser);
    if (!kernel || !l0::VerifyKernel(*kernel, diagnostics)) {
      EXPECT_TRUE(diagnostics.has_errors());
      continue;
    }
    ++accepted;
    const auto linear = l0::Linearize(*kernel);
    EXPECT_TRUE(linear.ok() || linear.status().code() == absl::StatusCode::kResourceExhausted);
  }
  EXPECT_GT(accepted, 400);
}

}  // namespace
}  // namespace l3c
