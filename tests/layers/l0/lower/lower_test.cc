// Whole programs: from the text of L1 to a plan that its verifier accepts.
#include "layers/l0/lower/lower.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cost/machine.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "layers/l1/text.h"
#include "layers/l1/verify.h"

namespace l3c::l0::lower {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

l1::Program ParseL1(const std::string& text) {
  const support::SourceFile source("test.l1", text);
  support::Diagnostics diagnostics(&source);
  auto program = l1::ParseProgram(source, diagnostics);
  if (program) l1::Verify(*program, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  return program.value_or(l1::Program{});
}

search::LoweringResult<Plan> LowerText(const std::string& text, const LowerOptions& options,
                                       support::Diagnostics& diagnostics) {
  const l1::Program program = ParseL1(text);
  const uint32_t node = program.graphs.empty() ? 0 : program.graphs[0].node;
  const cost::CpuCostModel costs(cost::MachineOf(program.system.nodes[node]));
  return Lower(program, costs, options, diagnostics);
}

Plan PlanOf(const std::string& text, const LowerOptions& options = {}) {
  support::Diagnostics diagnostics;
  auto result = LowerText(text, options, diagnostics);
  EXPECT_EQ(diagnostics.Render(false), "");
  EXPECT_TRUE(result.ok());
  if (!result.ok()) {
    if (auto* none = std::get_if<search::NoCandidates>(&*result.failure)) {
      ADD_FAILURE() << none->reason;
    }
    return {};
  }
  return result.best();
}

// y = x·w, squared error against t, plain gradient descent with momentum.
constexpr char kLinear[] = R"(# l3c l1 v1
system host {
    node ssd_0 { kind: storage }
    node ram_0 { kind: memory, capacity: 1GB }
    node cpu_0 { kind: compute, isa: x86_64, cores: 2, features: [avx2, fma, avx512f] }
    edges {
        ssd_0 -> ram_0  : bandwidth 2GB/s
        ram_0 <-> cpu_0 : bandwidth 25GB/s
    }
}
data points {
    x : tensor(f32, [8]) @ ssd_0, path: "data/points"
    t : tensor(f32, [4]) @ ssd_0, path: "data/points"
}
actor state on cpu_0 {
    state {
        w : tensor(f32, [8, 4]), init: kaiming, param
        m : tensor(f32, [8, 4]), init: zeros
    }
    window weights : (w)
        readers(step)
    on GradUpdate(gw: tensor(f32, [8, 4])) {
        let m_kept = tensor_scale(m, 0.9)
        let m_next = tensor_add(m_kept, gw)
        let move = tensor_scale(m_next, 0.01)
        let w_next = tensor_sub(w, move)
        w = w_next
        m = m_next
    }
}
stage load_train on cpu_0 {
    sample: epoch_shuffle(points, split: train, rows: 100, batch: 16, drop_last: false)
    fn process() -> forward(step, x, t, mask) {
        let x = alloc(ram_0, tensor(f32, [16, 8]))
        let t = alloc(ram_0, tensor(f32, [16, 4]))
        let mask = alloc(ram_0, tensor(f32, [16]))
        read(x, points.x)
        read(t, points.t)
        read(mask, points.valid)
        forward(step, x, t, mask)
    }
}
tensor_graph step on cpu_0 {
    reads: state.weights
    fn compute(x: tensor(f32, [16, 8]), t: tensor(f32, [16, 4]), mask: tensor(f32, [16])) -> (loss, rows, gw) {
        let y = tensor_matmul(x, w)
        let e = tensor_sub(y, t)
        let column = tensor_reshape(mask, [16, 1])
        let wide = tensor_broadcast(column, [16, 4])
        let d = tensor_mul(e, wide)
        let square = tensor_mul(d, d)
        let loss = tensor_reduce_sum(square)
        let rows = tensor_reduce_sum(mask)
        let xt = tensor_transpose(x)
        let gw = tensor_matmul(xt, d)
        return (loss, rows, gw)
    }
}
pipeline train { load_train -> step -> state.GradUpdate }
schedule {
    pipelines: [train]
    actors: [state]
    pipeline_depth: 2
    seed: 7
    phases [
        main(pipeline: train, epochs: 3),
    ]
    metrics [
        loss(split: train, graph: step, numerator: loss, denominator: rows),
    ]
}
)";

TEST(Lower, ASmallProgramGivesAPlanThatVerifies) {
  for (search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy, search::Mode::kEGraph}) {
    LowerOptions options;
    options.search.mode = mode;
    const Plan plan = PlanOf(kLinear, options);
    support::Diagnostics diagnostics;
    EXPECT_TRUE(VerifyPlan(plan, diagnostics)) << diagnostics.Render(false);
    ASSERT_EQ(plan.phases.size(), 1u);
    EXPECT_EQ(plan.phases[0].steps, 21);  // 7 batches of 16 an epoch, the last one short
    EXPECT_EQ(plan.parameters.size(), 1u);
    EXPECT_EQ(plan.optimiser_state.size(), 1u);
  }
}

TEST(Lower, TheTextOfThePlanIsComplete) {
  const Plan plan = PlanOf(kLinear);
  const std::string text = PrintPlan(plan);
  const support::SourceFile source("test.l0", text);
  support::Diagnostics diagnostics(&source);
  const auto parsed = ParsePlan(source, diagnostics);
  ASSERT_TRUE(parsed) << diagnostics.Render(false);
  EXPECT_EQ(PrintPlan(*parsed), text);
}

TEST(Lower, LaterStagesWaitForTheirBatchAndFreeItEarly) {
  const Plan plan = PlanOf(kLinear);
  int waits = 0;
  for (const Sequence& sequence : plan.sequences) {
    if (sequence.name != "train_0") continue;
    EXPECT_EQ(sequence.commands.front().kind, CommandKind::kWait);
    EXPECT_EQ(sequence.commands.back().kind, CommandKind::kReport);
    for (const Command& command : sequence.commands) {
      waits += command.kind == CommandKind::kWait;
    }
  }
  EXPECT_EQ(waits, 1);
}

TEST(Lower, LiveSlotsShareNoBytes) {
  LowerOptions options;
  options.search.mode = search::Mode::kOff;  // the most buffers
  const Plan plan = PlanOf(ReadText("tests/layers/l1/golden/mnist.l1"), options);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& a = plan.buffers[i];
    EXPECT_LE(a.offset + a.size, plan.pools[a.pool].size);
    for (size_t j = i + 1; j < plan.buffers.size(); ++j) {
      const Buffer& b = plan.buffers[j];
      if (a.pool != b.pool || a.first_use > b.last_use || b.first_use > a.last_use) continue;
      EXPECT_FALSE(a.offset < b.offset + b.size && b.offset < a.offset + a.size)
          << a.name << " and " << b.name;
    }
  }
}

TEST(Lower, MnistKeepsNoWeightGradient) {
  const Plan plan = PlanOf(ReadText("tests/layers/l1/golden/mnist.l1"));
  support::Diagnostics diagnostics;
  EXPECT_TRUE(VerifyPlan(plan, diagnostics)) << diagnostics.Render(false);
  for (const Buffer& buffer : plan.buffers) {
    const bool weight_sized = buffer.shape == tensor::Shape{784, 256};
    EXPECT_FALSE(weight_sized && plan.pools[buffer.pool].kind == PoolKind::kArena) << buffer.name;
  }
  for (const Sequence& sequence : plan.sequences) {
    for (const Command& command : sequence.commands) {
      EXPECT_NE(command.kind, CommandKind::kCopy) << "state is not updated in place";
    }
  }
}

TEST(Lower, UnstatedRowsAreAnError) {
  std::string text = kLinear;
  text.erase(text.find("rows: 100, "), 11);
  support::Diagnostics diagnostics;
  const auto result = LowerText(text, {}, diagnostics);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(diagnostics.Render(false).find("rows"), std::string::npos);
}

// The product of both would be 2^71.
TEST(Lower, EpochsTimesStepsBeyondAllBoundsIsAnError) {
  std::string text = kLinear;
  text.replace(text.find("rows: 100, batch: 16"), 20, "rows: 2147483648, batch: 16");
  const size_t epochs = text.find("epochs: ");
  text.replace(epochs, text.find_first_of(",)", epochs) - epochs, "epochs: 1099511627776");
  support::Diagnostics diagnostics;
  const auto result = LowerText(text, {}, diagnostics);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(diagnostics.Render(false).find(
                "makes 1099511627776 epochs of 134217728 steps; a phase makes at most "
                "1099511627776 steps in all"),
            std::string::npos)
      << diagnostics.Render(false);
}

TEST(Lower, TheSeedReachesTheInitialValuesAndTheBatches) {
  const Plan plan = PlanOf(kLinear);
  ASSERT_EQ(plan.samplers.size(), 1u);
  EXPECT_EQ(plan.samplers[0].seed, 7u);
  bool found = false;
  for (const InitOp& init : plan.init) {
    if (init.kind == InitKind::kNormal) {
      found = true;
      EXPECT_EQ(init.seed, 7u);
      EXPECT_NEAR(init.b, 0.5, 1e-6);  // sqrt(2 / 8)
    }
  }
  EXPECT_TRUE(found);
}

TEST(Lower, BetterSearchIsNeverDearer) {
  double cost[3];
  int i = 0;
  for (search::Mode mode : {search::Mode::kOff, search::Mode::kGreedy, search::Mode::kEGraph}) {
    LowerOptions options;
    options.search.mode = mode;
    support::Diagnostics diagnostics;
    const auto result =
        LowerText(ReadText("tests/layers/l1/golden/mnist.l1"), options, diagnostics);
    ASSERT_TRUE(result.ok());
    cost[i++] = result.candidates[0].cost[0].value;
  }
  EXPECT_LT(cost[2], cost[1]);
  EXPECT_LT(cost[1], cost[0]);
}

}  // namespace
}  // namespace l3c::l0::lower
