#include "layers/l0/gpu_launch.h"

#include <gtest/gtest.h>

#include <functional>

#include "layers/l0/kernel_schedule.h"
#include "layers/l0/linearize.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c {
namespace {

using l0::Across;
using testing::ParseOne;

constexpr const char* kNormalise =
    R"(kernel normalise(x: in f32 [100, 70], y: out f32 [100, 70]) {
    launch sm_80 grid 100 block 64, 1, 1 shared 16
    axis i : grid 100 block 1
    axis j : loop 70 across x
    axis k : reduce 70 tile 2 vector 2 across x
    %0 = load x[70*i + k]
    %1 = reduce_add %0 over k
    %2 = load x[70*i + j]
    %3 = reciprocal %1
    %4 = mul %2, %3
    store y[70*i + j], %4
}
)";

TEST(GpuLaunch, IsPrintedAsItIsRead) {
  EXPECT_EQ(l0::PrintKernel(ParseOne(kNormalise)), kNormalise);
}

void ExpectRejected(const std::function<void(l0::Kernel&)>& change, const std::string& expected) {
  l0::Kernel kernel = ParseOne(kNormalise);
  change(kernel);
  support::Diagnostics diagnostics;
  EXPECT_FALSE(l0::VerifyKernel(kernel, diagnostics));
  const std::string message = diagnostics.Render(false);
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

TEST(GpuLaunch, IsHeldAgainstTheAxes) {
  using K = l0::Kernel;
  ExpectRejected([](K& k) { k.launch->grid = 99; }, "its grid has 100 thread blocks, not 99");
  ExpectRejected([](K& k) { k.launch->shared = 8; }, "its threads share 16 bytes, not 8");
  ExpectRejected([](K& k) { k.launch->x = 48; }, "the threads along x are a power of two");
  ExpectRejected([](K& k) { k.launch->x = 2048; }, "more than 1024");
  ExpectRejected([](K& k) { k.launch->z = 2; },
                 "blocks lie side by side only where each is of one");
  ExpectRejected([](K& k) { k.launch.reset(); }, "is dealt out to threads, but there is no launch");
  ExpectRejected(
      [](K& k) {
        k.axes[2].across = Across::kY;
        k.launch->shared = 0;
      },
      "sums are folded along x");
  ExpectRejected([](K& k) { k.axes[0].across = Across::kX; },
                 "axes 'i' and 'k' are dealt out to the same threads");
}

TEST(GpuLaunch, ThreadsMayNeitherMissNorMeetOneAnother) {
  // The sum of a row is made in the loop over rows, which threads leave at different times.
  l0::Kernel rows = ParseOne(kNormalise);
  rows.axes[0].kind = l0::AxisKind::kLoop;
  rows.axes[0].across = Across::kX;
  rows.axes[1].across = Across::kNone;
  rows.launch->grid = 1;
  support::Diagnostics diagnostics;
  EXPECT_FALSE(l0::VerifyKernel(rows, diagnostics));
  EXPECT_NE(diagnostics.Render(false).find("are dealt out to the same threads"), std::string::npos);
  const auto rejected = [](const std::string& body, const std::string& expected) {
    const support::SourceFile source("test.l0", "kernel k(" + body);
    support::Diagnostics told(&source);
    support::ParserBase parser(source, told);
    const auto kernel = l0::ParseKernel(parser);
    ASSERT_TRUE(kernel) << told.Render(false);
    EXPECT_FALSE(l0::VerifyKernel(*kernel, told));
    EXPECT_NE(told.Render(false).find(expected), std::string::npos) << told.Render(false);
  };
  rejected(R"(x: in f32 [8, 4, 9], y: out f32 [8, 4]) {
    launch sm_80 grid 1 block 32, 1, 1
    axis i : loop 8 across x
    axis j : loop 4
    axis k : reduce 9 across x
    axis l : reduce 8
    %0 = load x[36*l + 9*j + k]
    %1 = reduce_add %0 over k
    %2 = reduce_add %1 over l
    %3 = range i
    %4 = cast %3 to f32
    %5 = add %2, %4
    store y[4*i + j], %5
})",
           "its threads meet in the loop of axis 'i'");
  rejected(R"(x: in f32 [64], y: out f32 [1]) {
    launch sm_80 grid 1 block 32, 1, 1
    axis i : loop 64 across x
    %0 = load x[i]
    store y[0], %0
})",
           "is dealt out to store to the same elements");
  rejected(R"(x: in f32 [64], y: inout f32 [8]) {
    launch sm_80 grid 8 block 32, 1, 1
    axis i : grid 8 block 1
    axis k : reduce 64 across x
    %0 = load x[k]
    %1 = reduce_add %0 over k
    %2 = load y[i]
    %3 = add %1, %2
    store y[i], %3
})",
           "its threads read what one of them stores to");
}

TEST(GpuLaunch, IsNoMatterOfACpu) {
  const auto linear = l0::Linearize(ParseOne(kNormalise));
  ASSERT_TRUE(linear.ok());
  EXPECT_FALSE(linear->launch);
  EXPECT_EQ(l0::PrintLinear(*linear).find("across"), std::string::npos);
}

TEST(GpuLaunch, ALinearKernelIsWhatOneThreadDoes) {
  const auto linear = l0::Linearize(ParseOne(kNormalise), {.threads = true});
  ASSERT_TRUE(linear.ok());
  const std::string text = l0::PrintLinear(*linear);
  EXPECT_NE(text.find("reduce_add"), std::string::npos);
  EXPECT_NE(text.find(" across x : f32\n"), std::string::npos) << text;
}

TEST(GpuLaunch, SchedulesAreFoundForEveryClass) {
  l0::Kernel kernel = ParseOne(kNormalise);
  kernel.launch.reset();
  for (l0::Axis& axis : kernel.axes) axis.across = Across::kNone;
  const auto schedules = l0::CandidateSchedules(kernel, {.lanes = 32, .gpu = "sm_80"});
  ASSERT_GE(schedules.size(), 3u);
  EXPECT_EQ(schedules.front().name, "rows of 32 threads x4");
  EXPECT_EQ(schedules.back().name, "one thread");
  for (const l0::Schedule& schedule : schedules) {
    const l0::Kernel scheduled = l0::ApplySchedule(kernel, schedule);
    EXPECT_EQ(l0::PrintKernel(ParseOne(l0::PrintKernel(scheduled))), l0::PrintKernel(scheduled));
  }
}

}  // namespace
}  // namespace l3c
