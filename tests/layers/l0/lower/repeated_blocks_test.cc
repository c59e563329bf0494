// Steps of many equal blocks: one is searched, all are launched, and the result is right.
#include "layers/l0/lower/repeated_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "cost/machine.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/lower/parts_plan.h"
#include "layers/l0/lower/step_parts.h"
#include "layers/tensor/differentiate.h"
#include "tests/layers/l0/lower/step_runner.h"

namespace l3c::l0::lower {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

struct Net {
  int layers = 6;
  int reported = -1;   // a layer whose activations are reported
  int different = -1;  // a layer with another factor
  bool cubed = false;  // the loss is the sum of cubes, not of squares
};

// Residual layers h + gelu(h·w + b)·f, and a step against the gradient of the sum of squares.
Graph Residual(const Net& net) {
  Graph g;
  NodeId h = g.AddInput("x", tensor::DType::kF32, {6, 8});
  std::vector<NodeId> parameters;
  for (int i = 0; i < net.layers; ++i) {
    const std::string n = std::to_string(i);
    const NodeId w = g.AddInput("s_w" + n, tensor::DType::kF32, {8, 8});
    const NodeId b = g.AddInput("s_b" + n, tensor::DType::kF32, {8});
    parameters.insert(parameters.end(), {w, b});
    const NodeId z =
        g.Binary(Op::kAdd, g.Matmul(h, w), g.Expand(g.Reshape(b, {1, 8}), {6, 8}), "z" + n);
    const NodeId a = g.Add(*tensor::FindOp("gelu"), {z}, {}, "a" + n);
    const NodeId f = g.Full(i == net.different ? 0.25 : 0.5, {6, 8});
    h = g.Binary(Op::kAdd, h, g.Binary(Op::kMul, a, f), "h" + n);
    if (i == net.reported) g.AddOutput("seen", h);
  }
  NodeId error = g.Binary(Op::kMul, h, h);
  if (net.cubed) error = g.Binary(Op::kMul, error, h);
  const NodeId loss = g.ReduceSum(error, {0, 1}, "loss");
  const tensor::Gradients gradients = tensor::Differentiate(g, loss, parameters);
  for (size_t p = 0; p < parameters.size(); ++p) {
    const NodeId parameter = gradients.wrt[p];
    const tensor::Shape shape = g.node(parameter).shape;
    const std::string name = g.node(parameter).name;
    const NodeId step = g.Binary(Op::kMul, gradients.nodes[p], g.Full(-0.01, shape));
    g.AddOutput(name, g.Binary(Op::kAdd, parameter, step));
  }
  g.AddOutput("loss", gradients.loss);
  return g;
}

// Keeps everything, and notes by label what was found and what was not.
class Kept : public support::BlobCache {
 public:
  std::optional<std::string> Load(std::string_view, std::string_view label,
                                  std::string_view key) override {
    const auto it = blobs_.find(std::string(key));
    (it == blobs_.end() ? made : reused).emplace(label);
    return it == blobs_.end() ? std::nullopt : std::optional(it->second);
  }
  void Store(std::string_view, std::string_view key, std::string_view bytes) override {
    blobs_.emplace(key, bytes);
  }
  void Forget() { made.clear(), reused.clear(); }

  std::set<std::string> made, reused;

 private:
  std::map<std::string, std::string> blobs_;
};

// With figures, so that what it decides may be kept.
class KnownCosts : public cost::CpuCostModel {
 public:
  using CpuCostModel::CpuCostModel;
  std::string figures() const override { return "two cores"; }
};

std::optional<PlannedStep> Planned(const Step& step, search::Mode mode,
                                   support::BlobCache* cache = nullptr,
                                   const search::ForcedChoices& forced = {}) {
  cost::CpuMachine machine;
  machine.cores = 2;
  const KnownCosts costs(machine);
  ChooseOptions options;
  options.mode = mode;
  options.prefix = "l0/test";
  options.forced = forced;
  options.explain = cache == nullptr;
  return PlanByParts(step, costs, EmbeddedRules(), options, cache);
}

// In the form that is run; nothing where the plan has no parts.
std::optional<LoweredForTest> ByBlocks(const Graph& graph, search::Mode mode,
                                       const search::ForcedChoices& forced = {}) {
  LoweredForTest lowered;
  lowered.step = StepOf(graph);
  auto planned = Planned(lowered.step, mode, nullptr, forced);
  if (!planned) return std::nullopt;
  lowered.explanation = std::move(planned->explanation);
  lowered.plan = std::move(planned->plan);
  ValueTable& table = lowered.chosen.table;
  table = std::move(planned->table);
  table.inputs.assign(lowered.step.inputs.size(), -1);
  for (ValueId v = 0; v < static_cast<ValueId>(table.values.size()); ++v) {
    if (table.values[v].input >= 0) table.inputs[table.values[v].input] = v;
  }
  table.outputs.clear();
  for (const StepOutput& output : lowered.step.outputs) {
    Value value;
    value.dtype = lowered.step.graph.node(output.node).dtype;
    value.shape = lowered.step.graph.node(output.node).shape;
    table.outputs.push_back(static_cast<ValueId>(table.values.size()));
    table.values.push_back(value);
  }
  return lowered;
}

void ExpectRight(const Graph& graph, const LoweredForTest& lowered) {
  const std::vector<tensor::Array> inputs = RandomInputs(graph, 3);
  const auto want = tensor::Evaluate(graph, inputs, tensor::Precision::kOwnDType);
  const auto got = RunLowered(lowered, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    double norm = 0;
    double error = 0;
    for (size_t i = 0; i < want[o].floats.size(); ++i) {
      norm += want[o].floats[i] * want[o].floats[i];
      error += std::pow(want[o].floats[i] - got[o].floats[i], 2);
    }
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm) + 1e-7) << graph.outputs()[o].name;
  }
}

std::set<std::string> KernelTexts(const LoweredForTest& lowered) {
  std::set<std::string> texts;
  for (const Launch& launch : lowered.plan.launches) {
    Kernel plain = launch.kernel;
    plain.name = "k";
    plain.origin.clear();
    for (Param& param : plain.params) param.name = "p" + std::to_string(&param - &plain.params[0]);
    for (Axis& axis : plain.axes) axis.name = "a" + std::to_string(&axis - &plain.axes[0]);
    texts.insert(PrintKernel(plain));
  }
  return texts;
}

TEST(RepeatedBlocks, OneLayerOfManyIsSearched) {
  const Graph graph = Residual({.layers = 9});
  const auto blocks = FindRepeatedBlocks(StepOf(graph));
  ASSERT_TRUE(blocks);
  EXPECT_GE(blocks->left_out, 5);
  const auto parts = CutStep(StepOf(graph));
  ASSERT_TRUE(parts);
  size_t nodes = 0;
  for (const StepPart& part : parts->parts) nodes += part.step.graph.size();
  EXPECT_LT(nodes, StepOf(graph).graph.size() - blocks->left_out_nodes / 2);
}

TEST(RepeatedBlocks, AllAreLaunchedAndRight) {
  for (const search::Mode mode :
       {search::Mode::kEGraph, search::Mode::kGreedy, search::Mode::kOff}) {
    const Graph graph = Residual({.layers = 7});
    const auto lowered = ByBlocks(graph, mode);
    ASSERT_TRUE(lowered) << search::ModeName(mode);
    ExpectRight(graph, *lowered);
  }
}

// The same few kernels for any depth, so that as few are compiled.
TEST(RepeatedBlocks, DepthBringsNoKernels) {
  const auto shallow = ByBlocks(Residual({.layers = 6}), search::Mode::kEGraph);
  const auto deep = ByBlocks(Residual({.layers = 16}), search::Mode::kEGraph);
  ASSERT_TRUE(shallow && deep);
  EXPECT_GT(deep->plan.launches.size(), shallow->plan.launches.size());
  EXPECT_LE(KernelTexts(*deep).size(), KernelTexts(*shallow).size());
  EXPECT_GT(deep->plan.seconds, shallow->plan.seconds);
}

// Who looks into a block, or is another, is no copy.
TEST(RepeatedBlocks, WhatDiffersIsLeftAlone) {
  EXPECT_FALSE(FindRepeatedBlocks(StepOf(Residual({.layers = 5, .reported = 2}))));
  EXPECT_FALSE(FindRepeatedBlocks(StepOf(Residual({.layers = 5, .different = 2}))));
  EXPECT_FALSE(FindRepeatedBlocks(StepOf(Residual({.layers = 2}))));
  const Graph graph = Residual({.layers = 12, .different = 3});
  const auto blocks = FindRepeatedBlocks(StepOf(graph));
  ASSERT_TRUE(blocks);
  EXPECT_LT(blocks->left_out, 8);
  const auto lowered = ByBlocks(graph, search::Mode::kEGraph);
  ASSERT_TRUE(lowered);
  ExpectRight(graph, *lowered);
}

// Another loss changes what is behind the blocks; the block and what is before it are the same
// steps, though every later node has another name.
TEST(StepParts, AnotherLossLeavesTheBlockAlone) {
  Kept kept;
  const Step squares = StepOf(Residual({.layers = 8}));
  const Step cubes = StepOf(Residual({.layers = 8, .cubed = true}));
  const auto cold = Planned(squares, search::Mode::kEGraph, &kept);
  ASSERT_TRUE(cold);
  EXPECT_TRUE(kept.reused.empty());
  const std::set<std::string> all = kept.made;
  ASSERT_GE(all.size(), 2u);
  EXPECT_TRUE(all.contains("l0/test/block"));

  kept.Forget();
  const auto warm = Planned(squares, search::Mode::kEGraph, &kept);
  ASSERT_TRUE(warm);
  EXPECT_EQ(kept.reused, all);
  EXPECT_TRUE(kept.made.empty());
  EXPECT_EQ(WritePlannedStep(*warm), WritePlannedStep(*cold));

  kept.Forget();
  const auto changed = Planned(cubes, search::Mode::kEGraph, &kept);
  ASSERT_TRUE(changed);
  EXPECT_TRUE(kept.reused.contains("l0/test/block"));
  EXPECT_EQ(kept.made.size(), 1u) << *kept.made.begin();
  Kept nothing;
  const auto anew = Planned(cubes, search::Mode::kEGraph, &nothing);
  ASSERT_TRUE(anew);
  EXPECT_EQ(WritePlannedStep(*changed), WritePlannedStep(*anew));
  EXPECT_NE(WritePlannedStep(*changed), WritePlannedStep(*cold));
}

// Who makes what is handed over first does not wait for what is handed over last.
TEST(StepParts, WhatIsHandedOverHasAnOrder) {
  const auto parts = CutStep(StepOf(Residual({.layers = 6})));
  ASSERT_TRUE(parts);
  for (const StepPart& part : parts->parts) {
    std::map<int32_t, tensor::NodeId> places;
    for (const StepInput& input : part.step.inputs) {
      if (input.order >= 0) places[input.order] = part.origin[input.node];
    }
    for (const StepOutput& output : part.step.outputs) {
      if (output.order >= 0) places[output.order] = part.origin[output.node];
    }
    EXPECT_FALSE(places.empty()) << part.name;
    tensor::NodeId last = 0;
    for (const auto& [order, node] : places) {
      EXPECT_LE(last, node) << part.name;
      last = node;
    }
  }
}

// A choice of a part, in the names of the whole step, gives the cost that was told.
TEST(StepParts, ALoserIsForcedAtItsCost) {
  const Graph graph = Residual({.layers = 6});
  const auto chosen = ByBlocks(graph, search::Mode::kEGraph);
  ASSERT_TRUE(chosen);
  int forced = 0;
  for (const search::Decision& decision : chosen->explanation.decisions) {
    if (decision.losers.empty() || decision.losers[0].cost.size() < 2 || forced == 6) continue;
    const search::Loser& loser = decision.losers[0];
    const auto other = ByBlocks(graph, search::Mode::kEGraph, {{decision.id, loser.label}});
    ASSERT_TRUE(other) << decision.id;
    EXPECT_NEAR(other->plan.seconds, loser.cost[0].value, 1e-9 * loser.cost[0].value)
        << decision.id << ": " << loser.label;
    ExpectRight(graph, *other);
    ++forced;
  }
  EXPECT_EQ(forced, 6);
}

TEST(StepParts, NamesArePlaces) {
  const Step step = StepOf(Residual({.layers = 6}));
  const auto parts = CutStep(step);
  ASSERT_TRUE(parts);
  const StepPart& block = parts->parts.front();
  for (tensor::NodeId node = 0; node < block.origin.size(); ++node) {
    const std::string text = "loop(" + PlaceName(node) + ")." + std::string(kStepName);
    EXPECT_EQ(FirstPlace(text), node);
    EXPECT_EQ(Spell(text, *parts, block, 0, step),
              "loop(" + step.graph.node(block.origin[node]).name + ").test");
  }
  EXPECT_EQ(FirstPlace("__x__7_"), std::nullopt);
  EXPECT_EQ(Spell("a__b__7", *parts, block, 0, step), "a__b__7");
}

}  // namespace
}  // namespace l3c::l0::lower
