// A checkpoint list of L2 down to the plan: what is computed again is not kept, which shows in the
// memory that a step takes.
#include <gtest/gtest.h>

#include <string>

#include "cost/machine.h"
#include "layers/l0/lower/lower.h"
#include "layers/l1/lower.h"
#include "layers/l1/text.h"
#include "layers/l2/ir.h"
#include "layers/l2/verify.h"

namespace l3c::l0::lower {
namespace {

// Sixteen stages of 64, each followed by tanh.
std::string Method(const std::string& backward) {
  std::string layers = "linear(64, 64)";
  for (int i = 0; i < 15; ++i) layers += ", tanh, linear(64, 64)";
  return "data d {\n    x : tensor(f32, [64])\n    y : tensor(f32, [64])\n}\n"
         "model m {\n    in:  d.x\n    out: tensor(f32, [64])\n    properties: []\n}\n"
         "loss l {\n    fit: divergence(m.out, d.y), weight: 1.0\n    combine: weighted_sum\n}\n"
         "goal: minimize(l)\n"
         "methods for m {\n    sample: epoch_shuffle(batch: 2048)\n    infer: sequential [ " +
         layers + " ]\n    backward: " + backward + "\n    update: sgd(lr: 0.1)\n}\n";
}

constexpr char kSystem[] =
    "system host {\n"
    "    node ssd_0 { kind: storage }\n"
    "    node ram_0 { kind: memory, capacity: 16GB }\n"
    "    node cpu_0 { kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }\n"
    "    edges {\n"
    "        ssd_0 -> ram_0 : bandwidth 2GB/s\n"
    "        ram_0 <-> cpu_0 : bandwidth 25GB/s\n"
    "    }\n"
    "}\n";

// Bytes that a training step takes beside batches and state.
int64_t ArenaOf(const std::string& backward) {
  const support::SourceFile system_text("host.l1", kSystem);
  const support::SourceFile text("m.l2", Method(backward));
  support::Diagnostics diagnostics(&text);
  const auto system = l1::ParseProgram(system_text, diagnostics);
  auto module = l2::ParseModule(text, diagnostics);
  if (module) l2::Verify(*module, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  if (!module || !system) return 0;
  l1::LowerOptions options;
  options.system = system->system;
  options.data["d"] = {"data/d", {{"train", 4096}}};
  const auto placed = l1::Lower(*module, options);
  EXPECT_TRUE(placed.ok());
  if (!placed.ok()) return 0;
  const l1::Program& program = placed.best();
  const cost::CpuCostModel costs(cost::MachineOf(program.system.nodes[program.graphs[0].node]));
  const auto plan = Lower(program, costs, {}, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  EXPECT_TRUE(plan.ok());
  if (!plan.ok()) return 0;
  for (const Pool& pool : plan.best().pools) {
    if (pool.name == "arena_train") return pool.size;
  }
  ADD_FAILURE() << "no arena";
  return 0;
}

TEST(CheckpointTest, WhatIsComputedAgainTakesNoMemoryUntilThen) {
  const int64_t all = ArenaOf("autodiff(mode: reverse)");
  const int64_t some = ArenaOf("autodiff(mode: reverse, checkpoint: [tanh4, tanh8, tanh12])");
  // Each of 15 results of 512 KiB is kept, or something that it is computed back from.
  EXPECT_GT(all, 15 * (int64_t{512} << 10));
  EXPECT_LT(some, all * 3 / 4);
}

}  // namespace
}  // namespace l3c::l0::lower
