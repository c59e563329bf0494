// Steps too deep for the search to look at all of: there is a plan all the same, and it is right.
#include "layers/l0/lower/span.h"

#include <gtest/gtest.h>

#include "layers/search/decision.h"
#include "layers/tensor/differentiate.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

// x·w behind so many gelus in a row, and a step against the gradient of the sum of squares.
Graph Gelus(int count) {
  Graph g;
  const NodeId x = g.AddInput("x", tensor::DType::kF32, {6, 8});
  const NodeId w = g.AddInput("s_w", tensor::DType::kF32, {8, 8});
  NodeId h = g.Matmul(x, w, "z");
  for (int i = 0; i < count; ++i) {
    h = g.Add(*tensor::FindOp("gelu"), {h}, {}, "h" + std::to_string(i));
  }
  const NodeId loss = g.ReduceSum(g.Binary(Op::kMul, h, h), {0, 1}, "loss");
  const tensor::Gradients gradients = tensor::Differentiate(g, loss, std::vector<NodeId>{w});
  const NodeId step = g.Binary(Op::kMul, gradients.nodes[0], g.Full(-0.1, {8, 8}));
  g.AddOutput("s_w", g.Binary(Op::kAdd, gradients.wrt[0], step));
  g.AddOutput("loss", gradients.loss);
  return g;
}

TestOptions Within(uint64_t nodes, search::Mode mode = search::Mode::kEGraph) {
  TestOptions options;
  options.mode = mode;
  options.budget.egraph_nodes = nodes;
  options.budget.nodes_given = true;
  return options;
}

TEST(Span, ShallowStepsAreLookedAtWhole) {
  const auto lowered = LowerForTest(Gelus(3), TestOptions());
  ASSERT_TRUE(lowered);
  EXPECT_TRUE(lowered->explanation.cuts.empty());
}

// The fewer nodes, the narrower the span, down to one op a kernel, for which there are nodes in any
// case; each time what was left out is told, with the option that has more looked at.
TEST(Span, FewNodesGiveNarrowerPlansThatAreRight) {
  const Graph graph = Gelus(10);
  size_t before = 0;
  for (const uint64_t nodes : {60'000, 8}) {
    for (const search::Mode mode : {search::Mode::kEGraph, search::Mode::kGreedy}) {
      SCOPED_TRACE(nodes);
      std::string failure;
      const auto lowered = LowerForTest(graph, Within(nodes, mode), &failure);
      ASSERT_TRUE(lowered) << failure;
      ASSERT_EQ(lowered->explanation.cuts.size(), 1u);
      const std::string& cut = lowered->explanation.cuts.front();
      EXPECT_NE(cut.find("--budget nodes=N"), std::string::npos) << cut;
      EXPECT_NE(search::RenderExplanation(lowered->explanation).find(cut), std::string::npos);
      EXPECT_NE(search::RenderExplanationJson(lowered->explanation).find("\"cuts\""),
                std::string::npos);
      EXPECT_EQ(nodes == 8, cut.find("a kernel of its own") != std::string::npos) << cut;
      if (nodes > 8) {
        EXPECT_LE(lowered->explanation.report.egraph_nodes, nodes);
      }
      if (mode == search::Mode::kEGraph) {
        EXPECT_GE(lowered->plan.launches.size(), before);
        before = lowered->plan.launches.size();
      }
    }
    ExpectSameAsInterpreter(graph, Within(nodes), 5);
  }
}

// Where nobody says how many nodes, a deep step gets as many as its narrowest span needs.
TEST(Span, DeepStepsFitTheirOwnBudget) {
  std::string failure;
  const auto lowered = LowerForTest(Gelus(30), TestOptions(), &failure);
  ASSERT_TRUE(lowered) << failure;
  ASSERT_EQ(lowered->explanation.cuts.size(), 1u);
  EXPECT_EQ(lowered->explanation.cuts.front().find("a kernel of its own"), std::string::npos);
}

TEST(Span, LongChainsEndInMemory) {
  ValueTable table;
  std::vector<bool> stored;
  for (ValueId v = 0; v < 10; ++v) {
    Value value;
    Definition definition;
    definition.op = v == 0 ? Op::kInput : v == 5 ? Op::kReshape : Op::kExp2;
    if (v > 0) definition.inputs = {v - 1};
    if (v == 0) value.input = 0;
    value.definitions = {definition};
    table.values.push_back(value);
    stored.push_back(false);
  }
  // 1 to 4 are four values; 5 is a view, so that 6 is kept.
  EXPECT_EQ(EndsOfLongChains(table, stored, 4), std::vector<ValueId>{6});
  stored[3] = true;
  EXPECT_EQ(EndsOfLongChains(table, stored, 4), std::vector<ValueId>{8});
  EXPECT_TRUE(EndsOfLongChains(table, stored, 6).empty());
}

}  // namespace
}  // namespace l3c::l0::lower
