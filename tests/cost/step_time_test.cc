#include "cost/step_time.h"

#include <gtest/gtest.h>

#include <string>

#include "cost/probe.h"
#include "layers/l0/kernel_schedule.h"

namespace l3c::cost {
namespace {

// A chain of maps over buffers of `elements` each, as many as `length` + 1, `rounds` times.
l0::Plan Chain(int64_t elements, int length) {
  l0::Plan plan;
  plan.pools.push_back({.name = "state", .kind = l0::PoolKind::kPersistent, .node = "ram"});
  const l0::Kernel kernel = ProbeKernel(Probe::kMap, {elements, 1, 1});
  plan.kernels.push_back(l0::ApplySchedule(kernel, l0::CandidateSchedules(kernel).front()));
  l0::Sequence sequence;
  sequence.name = "train_0";
  for (int i = 0; i <= length; ++i) {
    l0::Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.shape = {elements};
    buffer.size = elements * 4;
    buffer.offset = i * buffer.size;
    plan.buffers.push_back(buffer);
    if (i == 0) continue;
    l0::Command launch;
    launch.args = {static_cast<l0::BufferId>(i - 1), static_cast<l0::BufferId>(i)};
    sequence.commands.push_back(launch);
  }
  plan.sequences.push_back(sequence);
  return plan;
}

double Seconds(const l0::Plan& plan, const CpuMachine& machine) {
  return PredictStep(plan, plan.sequences[0], CpuCostModel(machine)).seconds;
}

// By their own size all of these kernels' bytes fit in the third level; what the sequence touches
// between two uses does not, once it is long.
TEST(StepTime, FindsBytesWhereTheSequenceLeftThem) {
  CpuMachine machine;
  machine.launch = machine.launch_alone = 0;
  constexpr int64_t kElements = 1 << 18;  // a MiB
  const double near = Seconds(Chain(kElements, 4), machine) / 4;
  const double far = Seconds(Chain(kElements, 64), machine) / 64;
  const double bytes = 2 * 4 * kElements;
  EXPECT_NEAR(near, bytes / (2 * machine.l3_bandwidth), 0.1 * near);
  // Of two buffers the launch before wrote one; the other is fetched twice, to be written.
  EXPECT_NEAR(far, bytes / 2 / (2 * machine.l3_bandwidth) + bytes / machine.memory_bandwidth,
              0.1 * far);
}

// Of 64 GiB that a step touches the pages are no more than of 16: time and memory are bounded.
TEST(StepTime, TakesPlansOfAnySize) {
  constexpr int64_t kElements = int64_t{1} << 30;
  const CpuMachine machine;
  const double seconds = Seconds(Chain(kElements, 8), machine) / 8;
  EXPECT_NEAR(seconds, 3 * 4.0 * kElements / machine.memory_bandwidth, 0.01 * seconds);
}

TEST(StepTime, AddsUpItsLaunches) {
  const l0::Plan plan = Chain(1 << 12, 9);
  const StepTime step = PredictStep(plan, plan.sequences[0], CpuCostModel(CpuMachine()));
  ASSERT_EQ(step.launches.size(), 9);
  double sum = 0;
  for (const LaunchTime& launch : step.launches) sum += launch.seconds;
  EXPECT_DOUBLE_EQ(step.seconds, sum);
  EXPECT_EQ(step.loads, 0);
  EXPECT_EQ(step.evidence, "analytical");
}

// A batch that the loader copies takes time from the cores that compute.
TEST(StepTime, CountsTheBatchesThatAreLoadedBesideIt) {
  l0::Plan plan = Chain(1 << 20, 1);
  const CpuMachine machine;
  const double alone = Seconds(plan, machine);
  l0::Command load;
  load.kind = l0::CommandKind::kLoad;
  load.fields = {{"x", 0}};
  plan.sequences.push_back({.name = "load_0", .stream = 1, .commands = {load}});
  const StepTime step = PredictStep(plan, plan.sequences[0], CpuCostModel(machine));
  const double copied = 3 * 4.0 * (1 << 20);
  EXPECT_DOUBLE_EQ(step.loads, copied / machine.memory_bandwidth);
  EXPECT_DOUBLE_EQ(step.seconds, alone + step.loads);
}

}  // namespace
}  // namespace l3c::cost
