// Plans within a bound: the same bits as without one, in fewer bytes.
#include "layers/l0/lower/recompute.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "layers/l0/lower/arena.h"
#include "layers/l0/lower/memory_bound.h"
#include "layers/tensor/differentiate.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

// Layers of x·w behind a tanh and a dropout whose mask comes from a counter that the step moves on,
// then a sum of squares; each weight is moved against its gradient.
Graph DropoutNetwork(int layers) {
  Graph g;
  NodeId x = g.AddInput("x", tensor::DType::kF32, {24, 16});
  const NodeId key = g.AddInput("s_key", tensor::DType::kU64, {});
  std::vector<NodeId> weights;
  for (int l = 0; l < layers; ++l) {
    weights.push_back(g.AddInput("s_w" + std::to_string(l), tensor::DType::kF32, {16, 16}));
    x = g.Matmul(x, weights.back(), "z" + std::to_string(l));
    x = g.Add(*tensor::FindOp("tanh"), {x}, {}, "h" + std::to_string(l));
    tensor::Attributes shape;
    shape.ints = {24, 16};
    const NodeId own =
        g.Binary(Op::kAdd, key, g.Const(static_cast<double>(l), tensor::DType::kU64));
    const NodeId draw = g.Add(Op::kRandom, {own}, shape, "u" + std::to_string(l));
    const NodeId keep = g.Binary(Op::kCmpLt, draw, g.Full(0.8, {24, 16}));
    x = g.Add(Op::kWhere, {keep, x, g.Full(0, {24, 16})}, {}, "m" + std::to_string(l));
  }
  const NodeId loss = g.ReduceSum(g.Binary(Op::kMul, x, x), {0, 1}, "loss");
  const tensor::Gradients gradients = tensor::Differentiate(g, loss, weights);
  for (int l = 0; l < layers; ++l) {
    const NodeId w = gradients.wrt[l];
    const NodeId step = g.Binary(Op::kMul, gradients.nodes[l], g.Full(-0.1, {16, 16}));
    g.AddOutput("s_w" + std::to_string(l), g.Binary(Op::kAdd, w, step));
  }
  const NodeId counted = *g.Find("s_key");
  g.AddOutput("s_key", g.Binary(Op::kAdd, counted, g.Const(1, tensor::DType::kU64)));
  g.AddOutput("loss", gradients.loss);
  return g;
}

bool SameBits(const tensor::Array& a, const tensor::Array& b) {
  const size_t bytes = a.floats.size() * sizeof(double);
  return a.ints == b.ints && a.floats.size() == b.floats.size() &&
         (bytes == 0 || std::memcmp(a.floats.data(), b.floats.data(), bytes) == 0);
}

struct Planned {
  std::optional<StepPlan> plan;
  RecomputeFailure failure;
  search::Explanation explanation;
};

Planned Within(const LoweredForTest& lowered, int64_t bound,
               const search::ForcedChoices& forced = {}, bool explain = false) {
  Planned planned;
  ChooseOptions options;
  options.prefix = "l0/test";
  options.budget.work = 300'000;
  options.forced = forced;
  options.explain = explain;
  planned.plan = PlanWithin(bound, lowered.plan, lowered.chosen.table, EmbeddedRules(), options,
                            "analytical", planned.explanation, planned.failure);
  return planned;
}

int64_t ArenaBytes(const LoweredForTest& lowered, const StepPlan& plan) {
  return PackArena(plan, lowered.chosen.table).packing.size;
}

TEST(RecomputeTest, DrawsTheSameMasksAndGivesTheSameBitsInFewerBytes) {
  const Graph graph = DropoutNetwork(6);
  auto lowered = LowerForTest(graph, {});
  ASSERT_TRUE(lowered);
  const std::vector<tensor::Array> inputs = RandomInputs(graph, 11);
  const std::vector<tensor::Array> expected = RunLowered(*lowered, inputs);
  const StepPlan saved = lowered->plan;
  const int64_t all = ArenaBytes(*lowered, saved);
  EXPECT_LE(static_cast<double>(all), 1.03 * static_cast<double>(OpByOpBytes(graph)));
  const int64_t least = Within(*lowered, 0).failure.needed;
  ASSERT_GT(least, 0);
  EXPECT_LT(least, all * 3 / 4);
  double seconds = std::numeric_limits<double>::infinity();
  for (const int64_t bound : {least, least + (all - least) / 3, all - 64, all, kNoBound}) {
    lowered->plan = saved;
    const Planned planned = Within(*lowered, bound);
    ASSERT_TRUE(planned.plan) << bound;
    EXPECT_LE(ArenaBytes(*lowered, *planned.plan), bound);
    EXPECT_LE(planned.plan->seconds, seconds);
    seconds = planned.plan->seconds;
    EXPECT_EQ(planned.plan->launches.size() > saved.launches.size(), bound < all);
    lowered->plan = *planned.plan;
    const std::vector<tensor::Array> given = RunLowered(*lowered, inputs);
    ASSERT_EQ(given.size(), expected.size());
    for (size_t o = 0; o < given.size(); ++o) {
      EXPECT_TRUE(SameBits(given[o], expected[o])) << "output " << o << " within " << bound;
    }
  }
  lowered->plan = saved;
  EXPECT_FALSE(Within(*lowered, least * 98 / 100).plan);
}

TEST(RecomputeTest, EveryDecisionIsExplainedAndCanBeForced) {
  const Graph graph = DropoutNetwork(4);
  auto lowered = LowerForTest(graph, {});
  ASSERT_TRUE(lowered);
  const std::vector<tensor::Array> inputs = RandomInputs(graph, 12);
  const std::vector<tensor::Array> expected = RunLowered(*lowered, inputs);
  const StepPlan saved = lowered->plan;
  const int64_t all = ArenaBytes(*lowered, saved);
  const int64_t least = Within(*lowered, 0).failure.needed;
  for (const int64_t bound : {kNoBound, least + (all - least) / 2}) {
    lowered->plan = saved;
    const Planned planned = Within(*lowered, bound, {}, true);
    ASSERT_TRUE(planned.plan);
    size_t recomputed = 0;
    size_t forced = 0;
    EXPECT_GE(planned.explanation.decisions.size(), 5u);
    for (const search::Decision& decision : planned.explanation.decisions) {
      EXPECT_TRUE(IsMemoryDecision(decision.id));
      recomputed += decision.chosen == "recompute";
      ASSERT_EQ(decision.rules.size(), 1u);
      EXPECT_EQ(decision.rules[0].file, "rewrites/checkpointing.egg");
      EXPECT_EQ(decision.losers.size() + decision.pruned.size(), 1u) << decision.id;
      if (decision.losers.empty()) continue;
      ++forced;
      const search::Loser& loser = decision.losers[0];
      EXPECT_NE(loser.label, decision.chosen);
      lowered->plan = saved;
      const Planned other = Within(*lowered, bound, {{decision.id, loser.label}});
      ASSERT_TRUE(other.plan) << decision.id << ": " << other.failure.forced;
      EXPECT_EQ(other.plan->seconds, loser.cost[0].value) << decision.id;
      const search::Decision* again = other.explanation.Find(decision.id);
      ASSERT_TRUE(again);
      EXPECT_TRUE(again->forced);
      EXPECT_EQ(again->chosen, loser.label);
      lowered->plan = *other.plan;
      EXPECT_TRUE(SameBits(RunLowered(*lowered, inputs).back(), expected.back()));
    }
    EXPECT_GT(forced, 0u);
    EXPECT_EQ(recomputed > 0, bound != kNoBound);
  }
  lowered->plan = saved;
  EXPECT_EQ(Within(*lowered, kNoBound, {{"l0/test/h9.kept@nowhere", "save"}})
                .failure.forced.find("there is no decision"),
            0u);
}

TEST(RecomputeTest, WithoutTheRulesNothingIsKept) {
  const auto lowered = LowerForTest(DropoutNetwork(2), {});
  ASSERT_TRUE(lowered);
  RuleSources rules = EmbeddedRules();
  rules.erase("checkpointing");
  search::Explanation explanation;
  RecomputeFailure failure;
  EXPECT_FALSE(PlanWithin(0, lowered->plan, lowered->chosen.table, rules, {}, "analytical",
                          explanation, failure));
  EXPECT_NE(failure.rule_error.find("checkpointing.egg"), std::string::npos);
}

TEST(MemoryBoundTest, SharesWhatThereIs) {
  EXPECT_EQ(ShareBytes({10, 20, 30}, 100), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(ShareBytes({30, 10, 50}, 60), (std::vector<int64_t>{25, 10, 25}));
  EXPECT_EQ(ShareBytes({5}, 0), (std::vector<int64_t>{0}));
}

}  // namespace
}  // namespace l3c::l0::lower
