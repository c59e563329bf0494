#include "layers/l0/kernel_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using l0::AxisKind;
using l0::KernelClass;
using testing::ParseOne;

std::string Matmul(int m, int k, int n, const std::string& a, const std::string& b,
                   const std::string& y = "") {
  const auto s = [](int x) { return std::to_string(x); };
  return "kernel matmul(a: in f32 [" + s(m * k) + "], b: in f32 [" + s(k * n) + "], y: out f32 [" +
         s(2 * m * n) + "]) {\n axis i : loop " + s(m) + "\n axis j : loop " + s(n) +
         "\n axis k : reduce " + s(k) + "\n %0 = load a[" + a + "]\n %1 = load b[" + b +
         "]\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n store y[" +
         (y.empty() ? s(n) + "*i + j" : y) + "], %3\n}";
}

constexpr const char* kSoftmax = R"(
kernel softmax(x: in f32 [128, 256], y: out f32 [128, 256]) {
    axis i : loop 128
    axis j : loop 256
    axis k : reduce 256
    %0 = load x[256*i + k]
    %1 = exp2 %0
    %2 = reduce_add %1 over k
    %3 = reciprocal %2
    %4 = load x[256*i + j]
    %5 = exp2 %4
    %6 = mul %5, %3
    store y[256*i + j], %6
})";

constexpr const char* kColumns = R"(
kernel columns(x: in f32 [128, 256], y: out f32 [256]) {
    axis j : loop 256
    axis i : reduce 128
    %0 = load x[256*i + j]
    %1 = reduce_add %0 over i
    store y[j], %1
})";

constexpr const char* kNeg = R"(
kernel negate(x: in f32 [1000], y: out f32 [1000]) {
    axis i : loop 1000
    %0 = load x[i]
    %1 = neg %0
    store y[i], %1
})";

TEST(KernelSchedule, Classifies) {
  EXPECT_EQ(l0::Classify(ParseOne(Matmul(128, 784, 256, "784*i + k", "256*k + j"))),
            KernelClass::kMatmul);
  EXPECT_EQ(l0::Classify(ParseOne(kSoftmax)), KernelClass::kRows);
  EXPECT_EQ(l0::Classify(ParseOne(kColumns)), KernelClass::kColumns);
  EXPECT_EQ(l0::Classify(ParseOne(kNeg)), KernelClass::kElementwise);
}

// How many indices differ from a label: nothing is read along the sum, so it has lanes all the
// same.
TEST(KernelSchedule, ASumThatReadsNothingHasLanes) {
  const l0::Kernel kernel = ParseOne(R"(
kernel differ(x: in f32 [64, 48], n: in i32 [64], y: out f32 [64, 48]) {
    axis i : loop 64
    axis j : loop 48
    axis k : reduce 128
    %0 = range k
    %1 = cast %0 to i32
    %2 = load n[i]
    %3 = cmpne %1, %2
    %4 = cast %3 to f32
    %5 = reduce_add %4 over k
    %6 = load x[48*i + j]
    %7 = mul %6, %5
    store y[48*i + j], %7
})");
  EXPECT_EQ(l0::CandidateSchedules(kernel).front().axes[2].vector, 16);
}

TEST(KernelSchedule, CandidatesAreLegalDistinctAndFew) {
  for (const std::string& text :
       {Matmul(128, 784, 256, "784*i + k", "256*k + j"),
        Matmul(784, 128, 256, "i + 784*k", "256*k + j"),
        Matmul(128, 256, 256, "256*i + k", "k + 256*j"), Matmul(1, 7, 10, "7*i + k", "10*k + j"),
        std::string(kSoftmax), std::string(kColumns), std::string(kNeg)}) {
    const l0::Kernel kernel = ParseOne(text);
    const auto schedules = l0::CandidateSchedules(kernel);
    ASSERT_FALSE(schedules.empty());
    EXPECT_LE(schedules.size(), 8u);
    std::set<std::string> texts;
    for (const l0::Schedule& schedule : schedules) {
      const l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
      support::Diagnostics diagnostics;
      EXPECT_TRUE(l0::VerifyKernel(scheduled, diagnostics)) << diagnostics.Render(false);
      EXPECT_EQ(l0::NumBlocks(scheduled), schedule.blocks);
      EXPECT_TRUE(texts.insert(l0::PrintKernel(scheduled)).second) << schedule.name;
    }
  }
}

TEST(KernelSchedule, MatmulTilesItsRegisters) {
  const l0::Kernel kernel = ParseOne(Matmul(128, 784, 256, "784*i + k", "256*k + j"));
  for (const auto& [registers, limit] : {std::pair<int, int>{32, 30}, {16, 14}}) {
    const auto schedules = l0::CandidateSchedules(kernel, {.vector_registers = registers});
    const l0::Schedule& first = schedules[0];
    EXPECT_EQ(first.axes[0].kind, AxisKind::kGrid);
    EXPECT_GT(first.axes[1].vector, 1);
    EXPECT_GE(first.accumulators, 8);
    EXPECT_LE(first.accumulators, limit);
    EXPECT_GE(first.blocks, 2);
  }
}

// Rows a power of two apart fall on few sets of a cache, so a block of them is copied; others are
// not.
TEST(KernelSchedule, RowsThatFallOnFewSetsAreReadInBlocks) {
  const auto blocked = [](const l0::Kernel& kernel) {
    std::vector<l0::Schedule> found;
    for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel)) {
      if (schedule.split) found.push_back(schedule);
    }
    return found;
  };
  const l0::Kernel apart = ParseOne(Matmul(1024, 1024, 768, "i + 1024*k", "768*k + j"));
  ASSERT_FALSE(blocked(apart).empty());
  for (const l0::Schedule& schedule : blocked(apart)) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(schedule.split->axis, 0u);
    EXPECT_EQ(1024 % schedule.split->block, 0);
    EXPECT_EQ(schedule.staged.size(), 2u);
    const l0::Kernel scheduled = l0::ApplySchedule(apart, schedule);
    ASSERT_EQ(scheduled.axes.size(), 4u);
    EXPECT_EQ(scheduled.axes[0].name, "i_block");
    EXPECT_EQ(scheduled.axes[0].extent * scheduled.axes[2].extent, 1024);
    EXPECT_EQ(scheduled.axes[2].name, "i");
    // The same elements in the same places.
    const int64_t block = schedule.split->block;
    const l0::Affine& stored = scheduled.uops.back().index;
    const l0::Affine expected{0, {{0, 768 * block}, {1, 1}, {2, 768}}};
    EXPECT_TRUE(stored == expected);
  }
  EXPECT_TRUE(blocked(ParseOne(Matmul(1000, 1024, 768, "i + 1000*k", "768*k + j"))).empty());
  EXPECT_TRUE(blocked(ParseOne(Matmul(1024, 1024, 768, "1024*i + k", "768*k + j"))).empty());
  EXPECT_TRUE(blocked(ParseOne(Matmul(1024, 64, 768, "i + 1024*k", "768*k + j"))).empty());
}

TEST(KernelSchedule, DotProductsTakeTheirLanesAlongTheSum) {
  const auto schedules =
      l0::CandidateSchedules(ParseOne(Matmul(128, 256, 256, "256*i + k", "k + 256*j")));
  EXPECT_EQ(schedules[0].axes[2].vector, 16);
  EXPECT_EQ(schedules[0].axes[0].vector, 1);
  // Sums that are stored side by side are packed.
  EXPECT_EQ(schedules[0].name, "dot 3x8 packed");
  EXPECT_EQ(schedules[0].axes[1].vector, 8);
  // Stored down the rows, it is those that are; apart, none.
  const auto down = l0::CandidateSchedules(
      ParseOne(Matmul(128, 256, 256, "256*i + k", "k + 256*j", "i + 128*j")));
  EXPECT_EQ(down[0].axes[0].vector, 8);
  EXPECT_EQ(down[0].axes[1].vector, 1);
  const auto apart = l0::CandidateSchedules(
      ParseOne(Matmul(128, 256, 256, "256*i + k", "k + 256*j", "512*i + 2*j")));
  EXPECT_EQ(apart[0].name, "dot 4x4");
}

// A worker that has the most blocks has as few tiles as it can, in blocks as long as that allows.
TEST(KernelSchedule, BlocksShareOutTheTilesAsEvenlyAsTheyGo) {
  for (const int64_t extent : {16384, 17000, 30030, 46656, 65536, 100003, 123456, 999983}) {
    for (const int workers : {1, 2, 3, 8}) {
      const std::string n = std::to_string(extent);
      const l0::Kernel kernel = ParseOne("kernel negate(x: in f32 [" + n + "], y: out f32 [" + n +
                                         "]) {\n axis i : loop " + n +
                                         "\n %0 = load x[i]\n %1 = neg %0\n store y[i], %1\n}");
      for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, {.workers = workers})) {
        const l0::AxisSchedule& axis = schedule.axes[0];
        if (axis.kind != AxisKind::kGrid) continue;
        const int64_t tiles = (extent + axis.tile - 1) / axis.tile;
        // Tiles of the worker with the most, in blocks of so many.
        const auto longest = [&](int64_t block) {
          const int64_t blocks = (tiles + block - 1) / block;
          return std::min((blocks + workers - 1) / workers * block, tiles);
        };
        int64_t best = (tiles + 8 * workers - 1) / (8 * workers);
        for (int64_t block = best; block-- > 1;) {
          if (longest(block) < longest(best)) best = block;
        }
        EXPECT_EQ(axis.block, best * axis.tile) << extent << " on " << workers << schedule.name;
      }
    }
  }
}

TEST(KernelSchedule, ALargeKernelIsScheduledInAMoment) {
  // 2^38 + 2^5 elements: tiles that no small number of equal parts makes up.
  const l0::Kernel kernel = ParseOne(
      "kernel negate(x: in f32 [274877906976], y: out f32 [274877906976]) {\n"
      " axis i : loop 274877906976\n %0 = load x[i]\n %1 = neg %0\n store y[i], %1\n}");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(l0::CandidateSchedules(kernel).empty());
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(spent.count(), 5);
}

TEST(KernelSchedule, ReorderingKeepsTheKernel) {
  // Column sums first in the text, the grid axis last: the order of the schedule moves it forward.
  const l0::Kernel kernel = ParseOne(R"(
kernel transpose(x: in f32 [40, 50], y: out f32 [50, 40]) {
    axis i : loop 40
    axis j : loop 50
    %0 = load x[50*i + j]
    store y[i + 40*j], %0
})");
  l0::Schedule schedule;
  schedule.order = {1, 0};
  schedule.axes.resize(2);
  schedule.axes[1].kind = AxisKind::kGrid;
  schedule.axes[1].block = 10;
  const l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
  EXPECT_EQ(l0::PrintKernel(scheduled),
            R"(kernel transpose(x: in f32 [40, 50], y: out f32 [50, 40]) {
    axis j : grid 50 block 10
    axis i : loop 40
    %0 = load x[j + 50*i]
    store y[40*j + i], %0
}
)");
}

TEST(KernelSchedule, TwoLoadsAreTransposedForOneStore) {
  // The halves of a turned matrix in pairs: lanes along the loads would scatter every store.
  const l0::Kernel kernel = ParseOne(R"(
kernel pairs(x: in f32 [256, 64], y: out u32 [64, 128]) {
    axis i : loop 64
    axis j : loop 128
    %0 = load x[i + 64*j]
    %1 = load x[i + 64*j + 8192]
    %2 = bf16_pair %0, %1
    store y[128*i + j], %2
})");
  const l0::Schedule best = l0::CandidateSchedules(kernel).front();
  EXPECT_EQ(best.name, "transpose 16x16");
  EXPECT_EQ(best.axes[1].vector, 16);
  EXPECT_EQ(best.axes[0].tile, 16);
  EXPECT_EQ(best.axes[0].vector, 1);
}

}  // namespace
}  // namespace l3c
