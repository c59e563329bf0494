// Steps of many equal blocks: one is searched, all are launched, and the result is right.
#include "layers/l0/lower/repeated_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cost/machine.h"
#include "layers/l0/kernel_text.h"
#include "layers/l0/lower/block_plan.h"
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
  const NodeId loss = g.ReduceSum(g.Binary(Op::kMul, h, h), {0, 1}, "loss");
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

// As PlanByBlocks() has it, in the form that is run; nothing where it gives nothing.
std::optional<LoweredForTest> ByBlocks(const Graph& graph, search::Mode mode) {
  LoweredForTest lowered;
  lowered.step = StepOf(graph);
  cost::CpuMachine machine;
  machine.cores = 2;
  const cost::CpuCostModel costs(machine);
  ChooseOptions options;
  options.mode = mode;
  options.prefix = "l0/test";
  auto planned = PlanByBlocks(lowered.step, costs, EmbeddedRules(), options);
  if (!planned) return std::nullopt;
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
  EXPECT_EQ(blocks->step.graph.size() + blocks->left_out_nodes, StepOf(graph).graph.size());
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

}  // namespace
}  // namespace l3c::l0::lower
