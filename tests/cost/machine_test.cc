#include "cost/machine.h"

#include <gtest/gtest.h>

#include "layers/l0/kernel_schedule.h"
#include "tests/layers/l0/kernel/parse_kernel.h"

namespace l3c::cost {
namespace {

using l0::lower::AccessWork;
using l0::lower::ComputeWork;
using l0::lower::Pattern;

l1::SystemNode Node(int64_t cores, std::vector<std::string> features) {
  l1::SystemNode node;
  node.kind = l1::NodeKind::kCompute;
  node.cores = cores;
  node.features = std::move(features);
  return node;
}

TEST(Machine, FollowsTheNodeAndNothingElse) {
  EXPECT_EQ(MachineOf(Node(8, {"avx2", "fma"})).lanes, 8);
  EXPECT_EQ(MachineOf(Node(8, {"avx2", "fma"})).registers, 16);
  EXPECT_EQ(MachineOf(Node(8, {"avx2", "fma", "avx512f"})).lanes, 16);
  EXPECT_EQ(MachineOf(Node(8, {"sse2"})).lanes, 4);
  EXPECT_EQ(MachineOf(Node(8, {})).cores, 8);
  EXPECT_EQ(MachineOf(Node(0, {})).cores, 1);
}

AccessWork Load(double elements, Pattern pattern) {
  AccessWork work;
  work.points = elements;
  work.bytes = work.buffer = elements * 4;
  work.pattern = pattern;
  work.lanes = 16;
  work.blocks = 64;
  return work;
}

TEST(Machine, StridedLoadsCostMoreThanContiguousOnes) {
  const CpuCostModel costs{CpuMachine{}};
  EXPECT_GT(costs.LoadSeconds(Load(65536, Pattern::kStrided)),
            2 * costs.LoadSeconds(Load(65536, Pattern::kContiguous)));
}

TEST(Machine, BuffersBeyondTheCachesCostMoreForAByte) {
  const CpuCostModel costs{CpuMachine{}};
  const double small = costs.LoadSeconds(Load(1e4, Pattern::kContiguous)) / 1e4;
  const double large = costs.LoadSeconds(Load(1e8, Pattern::kContiguous)) / 1e8;
  EXPECT_GT(large, 3 * small);
}

TEST(Machine, WorkOfOneBlockRunsOnOneCore) {
  const CpuCostModel costs{CpuMachine{}};
  ComputeWork work{tensor::Op::kExp2, tensor::DType::kF32, 1e6, 16, 1};
  const double one = costs.ComputeSeconds(work);
  work.blocks = 8;
  EXPECT_DOUBLE_EQ(costs.ComputeSeconds(work), one / 2);
  EXPECT_LT(costs.LaunchSeconds(1), costs.LaunchSeconds(8));
}

// The contraction of 512³ at full lanes is bound by arithmetic: two flops a lane, twice a cycle.
TEST(Machine, AContractionApproachesThePeak) {
  l0::Kernel kernel;
  kernel.name = "mm";
  const auto axis = [&](const char* name, l0::AxisKind kind) {
    l0::Axis a;
    a.name = name;
    a.extent = 512;
    a.kind = kind;
    kernel.axes.push_back(a);
  };
  axis("i", l0::AxisKind::kLoop);
  axis("j", l0::AxisKind::kLoop);
  axis("k", l0::AxisKind::kReduce);
  kernel.params = {{"x", l0::Access::kIn, tensor::DType::kF32, {512, 512}},
                   {"w", l0::Access::kIn, tensor::DType::kF32, {512, 512}},
                   {"y", l0::Access::kOut, tensor::DType::kF32, {512, 512}}};
  const auto add = [&](l0::Uop uop) {
    kernel.uops.push_back(std::move(uop));
    return static_cast<l0::UopId>(kernel.uops.size() - 1);
  };
  l0::Uop x;
  x.op = l0::UOp::kLoad;
  x.index.terms = {{0, 512}, {2, 1}};
  l0::Uop w = x;
  w.param = 1;
  w.index.terms = {{1, 1}, {2, 512}};
  l0::Uop product;
  product.op = l0::UOp::kMul;
  product.src = {add(x), add(w)};
  l0::Uop sum;
  sum.op = l0::UOp::kReduce;
  sum.src = {add(product)};
  sum.axes = {2};
  l0::Uop store;
  store.op = l0::UOp::kStore;
  store.param = 2;
  store.src = {add(sum)};
  store.index.terms = {{0, 512}, {1, 1}};
  add(store);
  const CpuCostModel costs{CpuMachine{}};
  double best = 1;
  for (const l0::Schedule& schedule : l0::CandidateSchedules(kernel, costs.target())) {
    best = std::min(best, costs.KernelSeconds(kernel, schedule));
  }
  const double peak = 2 * 2 * 16 * costs.machine().clock * 2;  // flops a second of two cores
  const double flops = 2.0 * 512 * 512 * 512;
  EXPECT_GE(best, flops / peak);
  EXPECT_LE(best, 1.3 * flops / peak);
}

// x·wᵀ, then exp2 of each number: along the sum there are lanes either way, for what is made of it
// only where the sums are packed.
TEST(Machine, WhatIsMadeOfPackedSumsHasLanes) {
  const auto kernel = [](const std::string& epilogue) {
    return l3c::testing::ParseOne(
        "kernel dot(x: in f32 [128, 256], w: in f32 [256, 256], y: out f32 [128, 256]) {\n"
        " axis i : loop 128\n axis j : loop 256\n axis k : reduce 256\n %0 = load x[256*i + k]\n"
        " %1 = load w[256*j + k]\n %2 = mul %0, %1\n %3 = reduce_add %2 over k\n" +
        epilogue + " store y[256*i + j], %4\n}");
  };
  const CpuCostModel costs{CpuMachine{}};
  const auto seconds = [&](const l0::Kernel& dot, const std::string& name) {
    for (const l0::Schedule& schedule : l0::CandidateSchedules(dot, costs.target())) {
      if (schedule.name == name) return costs.KernelSeconds(dot, schedule);
    }
    ADD_FAILURE() << name;
    return 0.0;
  };
  const l0::Kernel plain = kernel(" %4 = neg %3\n");
  const l0::Kernel heavy = kernel(" %4 = exp2 %3\n");
  const auto more = [&](const std::string& name) {
    return seconds(heavy, name) - seconds(plain, name);
  };
  EXPECT_NEAR(more("dot 4x4") / more("dot 3x8 packed"), 8, 0.01);
  EXPECT_LT(seconds(plain, "dot 3x8 packed"), seconds(plain, "dot 4x4"));
}

}  // namespace
}  // namespace l3c::cost
