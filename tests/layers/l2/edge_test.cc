// Where the obvious way to compute something goes wrong: the values that an expert expects there.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/l2/expand.h"
#include "layers/l2/layers.h"
#include "layers/l2/losses.h"
#include "layers/support/parser.h"
#include "layers/tensor/differentiate.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Result {
  Numbers value;
  Numbers gradient;  // of the sum of the values, by x
};

// A function of one f32 tensor in its own dtype.
Result Evaluate(const Shape& shape, const Numbers& x,
                const std::function<NodeId(Graph&, NodeId)>& function) {
  Graph g;
  const NodeId input = g.AddInput("x", DType::kF32, shape);
  const std::vector<Array> values = {Array::Floats(DType::kF32, shape, x)};
  const NodeId y = function(g, input);
  Result result;
  result.value = EvaluateNodes(g, values, std::vector{y}, tensor::Precision::kOwnDType)[0].floats;
  const auto gradients = tensor::Differentiate(g, SumAll(g, y), std::vector{input});
  result.gradient =
      EvaluateNodes(g, values, gradients.nodes, tensor::Precision::kOwnDType)[0].floats;
  return result;
}

NodeId Layer(Graph& g, const std::string& text, NodeId x, const std::vector<NodeId>& parameters) {
  const Form form = testing::ReadForm(text, Family::kLayer);
  return FindLayer(form.name)->expand(g, form, std::vector{x}, parameters);
}

TEST(L2Edges, SoftmaxOfMinusInfinityIsZeroAndItsRowSumsToOne) {
  const Result r = Evaluate({1, 3}, {0, -kInfinity, 0}, Softmax);
  EXPECT_EQ(r.value, (Numbers{0.5, 0, 0.5}));
  EXPECT_EQ(r.gradient, (Numbers{0, 0, 0}));
}

// Nothing is left to give the probability to.
TEST(L2Edges, SoftmaxOfARowOfMinusInfinityIsNaN) {
  const Result r = Evaluate({2, 2}, {-kInfinity, -kInfinity, 1, 1}, Softmax);
  EXPECT_TRUE(std::isnan(r.value[0]) && std::isnan(r.value[1]));
  EXPECT_EQ(r.value[2], 0.5);
}

TEST(L2Edges, SoftmaxOfHugeLogitsIsExact) {
  EXPECT_EQ(Evaluate({1, 2}, {3e38, 3e38}, Softmax).value, (Numbers{0.5, 0.5}));
  EXPECT_EQ(Evaluate({1, 2}, {3e38, -3e38}, Softmax).value, (Numbers{1, 0}));
  EXPECT_EQ(Evaluate({1, 2}, {1000, 0}, LogSoftmax).value, (Numbers{0, -1000}));
}

// The loss and its gradient of a method on rows of [0, 0, 0, 0], four classes.
std::pair<double, Numbers> CrossEntropy(const std::string& loss, const Numbers& labels,
                                        const Numbers& logits, const Numbers& mask) {
  const Module module = testing::Read(R"(data d {
    x : tensor(f32, [4])
    y : scalar(u8)
}
model m {
    in:  d.x
    out: dist(4)
    properties: []
}
loss l {
    fit: divergence(m.out, d.y), weight: 1.0
    combine: weighted_sum
}
goal: minimize(l)
methods for m {
    sample:   epoch_shuffle(batch: 2)
    infer: sequential [ linear(4, 4), softmax ]
    backward: autodiff(mode: reverse)
    update:   sgd(lr: 0.1)
    loss:     )" + loss + "\n}\n");
  ForwardGraph forward = ExpandForward(module, module.methods[0], 2);
  Graph& g = forward.graph;
  // The identity as weight: the logits are what is given.
  Numbers identity(16, 0);
  for (size_t i = 0; i < 4; ++i) identity[5 * i] = 1;
  std::vector<Array> values;
  for (NodeId id : g.inputs()) {
    const tensor::Node& node = g.node(id);
    const Numbers* from = node.name == "x"                ? &logits
                          : node.name == "mask"           ? &mask
                          : node.name == "linear1_weight" ? &identity
                                                          : nullptr;
    if (from != nullptr) {
      values.push_back(Array::Floats(node.dtype, node.shape, *from));
    } else if (node.name == "y") {
      values.push_back(
          Array::Ints(node.dtype, node.shape,
                      {static_cast<int64_t>(labels[0]), static_cast<int64_t>(labels[1])}));
    } else {
      values.push_back(Array::Zeros(node.dtype, node.shape));
    }
  }
  const std::vector<NodeId> wrt = {*g.Find("linear1_bias")};
  const auto gradients = tensor::Differentiate(g, forward.loss, wrt);
  const auto found = EvaluateNodes(g, values, std::vector{gradients.loss, gradients.nodes[0]},
                                   tensor::Precision::kOwnDType);
  return {found[0].floats[0], found[1].floats};
}

TEST(L2Edges, CrossEntropyWithEveryLabelIgnoredIsZeroAndMovesNothing) {
  const auto [loss, gradient] =
      CrossEntropy("ce(ignore_index: 3)", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 1});
  EXPECT_EQ(loss, 0);
  EXPECT_EQ(gradient, (Numbers{0, 0, 0, 0}));
}

TEST(L2Edges, CrossEntropyCountsOnlyTheLabelsThatAreNotIgnored) {
  const auto [loss, gradient] =
      CrossEntropy("ce(ignore_index: 3)", {0, 3}, {0, 0, 0, 0, 5, 6, 7, 8}, {1, 1});
  EXPECT_NEAR(loss, std::log(4.0), 1e-6);
  EXPECT_NEAR(gradient[0], -0.75, 1e-6);
  EXPECT_NEAR(gradient[1], 0.25, 1e-6);
}

// −(1 − s)·log p[label] − s/n·Σ log p, all p equal: log n whatever s is; the gradient at the label
// is 1/n − (1 − s) − s/n.
TEST(L2Edges, LabelSmoothing) {
  const auto [loss, gradient] =
      CrossEntropy("ce(label_smoothing: 0.2)", {1, 1}, Numbers(8, 0), {1, 1});
  EXPECT_NEAR(loss, std::log(4.0), 1e-6);
  EXPECT_NEAR(gradient[1], 0.25 - 0.8 - 0.05, 1e-6);
  EXPECT_NEAR(gradient[0], 0.25 - 0.05, 1e-6);
}

// A row that pads the batch may hold anything.
TEST(L2Edges, PaddedRowsCountNothingEvenWhereTheyAreNaN) {
  const double nan = std::nan("");
  const auto [loss, gradient] =
      CrossEntropy("ce", {0, 0}, {0, 0, 0, 0, nan, nan, nan, nan}, {1, 0});
  EXPECT_NEAR(loss, std::log(4.0), 1e-6);
}

TEST(L2Edges, TheGradientOfAMaximumIsSharedAmongTies) {
  const Result reduced = Evaluate({1, 4}, {2, 5, 5, 1}, MaxLast);
  EXPECT_EQ(reduced.gradient, (Numbers{0, 0.5, 0.5, 0}));
  const Result pooled = Evaluate({1, 2, 2, 1}, {3, 3, 3, 3}, [](Graph& g, NodeId x) {
    return Layer(g, "pool(max, 2)", x, {});
  });
  EXPECT_EQ(pooled.value, (Numbers{3}));
  EXPECT_EQ(pooled.gradient, (Numbers{0.25, 0.25, 0.25, 0.25}));
  const Result pair = Evaluate(
      {1}, {0}, [](Graph& g, NodeId x) { return g.Binary(Op::kMax, x, g.Unary(Op::kNeg, x)); });
  EXPECT_EQ(pair.gradient, (Numbers{0}));
}

// The variance of one element is zero: its norm is its offset, with no slope.
TEST(L2Edges, NormOfOneElement) {
  const Result r = Evaluate({2, 1}, {3, -1e30}, [](Graph& g, NodeId x) {
    const NodeId gain = g.Full(2, {1});
    const NodeId offset = g.Full(0.5, {1});
    return Layer(g, "norm(layer)", x, {gain, offset});
  });
  EXPECT_EQ(r.value, (Numbers{0.5, 0.5}));
  EXPECT_EQ(r.gradient, (Numbers{0, 0}));
}

TEST(L2Edges, RowsColumnsPrimesAndNoRowsAtAll) {
  for (const int64_t batch : {0, 1, 7}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{1, 5}, {5, 1}, {13, 11}}) {
      Graph g;
      const NodeId x = g.AddInput("x", DType::kF32, {batch, in});
      const NodeId w = g.AddInput("w", DType::kF32, {in, out});
      const NodeId b = g.AddInput("b", DType::kF32, {out});
      const NodeId y =
          Layer(g, "linear(" + std::to_string(in) + ", " + std::to_string(out) + ")", x, {w, b});
      const std::vector<Array> values = {
          Array::Floats(DType::kF32, {batch, in}, Numbers(batch * in, 2)),
          Array::Floats(DType::kF32, {in, out}, Numbers(in * out, 3)),
          Array::Floats(DType::kF32, {out}, Numbers(out, 1))};
      const auto gradients = tensor::Differentiate(g, SumAll(g, y), std::vector{x, w, b});
      std::vector<NodeId> nodes = {y};
      nodes.insert(nodes.end(), gradients.nodes.begin(), gradients.nodes.end());
      const auto found = EvaluateNodes(g, values, nodes, tensor::Precision::kOwnDType);
      EXPECT_EQ(found[0].floats, Numbers(batch * out, 6.0 * in + 1));
      EXPECT_EQ(found[1].floats, Numbers(batch * in, 3.0 * out));
      EXPECT_EQ(found[2].floats, Numbers(in * out, 2.0 * batch));
      EXPECT_EQ(found[3].floats, Numbers(out, 1.0 * batch));
    }
  }
}

// With a constant gradient the corrected means are the gradient and its square from the first step
// on: every step is lr·g/(|g| + eps).
TEST(L2Edges, AdamsFirstTenStepsAreCorrectedForTheirBias) {
  const UpdateGraph update = ExpandUpdate(testing::ReadForm("adam(lr: 0.125)", Family::kUpdate),
                                          {{"p", {1}, Init::kZeros, 0}}, 10, DType::kF64);
  std::map<std::string, Array> values;
  for (NodeId id : update.graph.inputs()) {
    const tensor::Node& node = update.graph.node(id);
    values[node.name] = Array::Zeros(node.dtype, node.shape);
  }
  values["p_grad"].floats = {3};
  for (int step = 1; step <= 10; ++step) {
    std::vector<Array> inputs;
    for (NodeId id : update.graph.inputs()) inputs.push_back(values[update.graph.node(id).name]);
    const auto outputs = tensor::Evaluate(update.graph, inputs, tensor::Precision::kOwnDType);
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[update.graph.outputs()[i].name] = outputs[i];
    }
    EXPECT_NEAR(values["p"].floats[0], -0.125 * step, 1e-8);
  }
}

// 0 · NaN is no zero: the term may not be simplified away.
TEST(L2Edges, LossPlusZeroTimesNaNStaysNaN) {
  const Result r = Evaluate({2}, {1, std::nan("")}, [](Graph& g, NodeId x) {
    const NodeId loss = g.Const(1);
    return Add(g, loss, SumAll(g, TimesConstant(g, x, 0)));
  });
  EXPECT_TRUE(std::isnan(r.value[0]));
}

// e⁸⁸ is the last that f32 holds (to a whole number); both are what they are, not what log∘exp = id
// would make of them.
TEST(L2Edges, LogOfExpAt88And89) {
  auto log_exp = [](Graph& g, NodeId x) { return Apply(g, "log", {Apply(g, "exp", {x})}); };
  EXPECT_NEAR(Evaluate({1}, {88}, log_exp).value[0], 88, 1e-4);
  EXPECT_EQ(Evaluate({1}, {89}, log_exp).value[0], kInfinity);
}

TEST(L2Edges, TransposedOnTheLeftOfAMatmul) {
  // xᵀ·w for x [2, 3], w [2, 1]: the gradient by x is w·1ᵀ laid out as x.
  const Result r = Evaluate({2, 3}, {1, 2, 3, 4, 5, 6}, [](Graph& g, NodeId x) {
    const NodeId w = Iota(g, {2, 1}, 0, DType::kF32);
    return g.Matmul(g.Transpose(x), w);
  });
  EXPECT_EQ(r.value, (Numbers{4, 5, 6}));
  EXPECT_EQ(r.gradient, (Numbers{0, 0, 0, 1, 1, 1}));
}

// y = norm(norm(x)) with one gain and offset: each use adds to the gradient.
TEST(L2Edges, TwoNormsSharingOneParameter) {
  const Module module = testing::Read(testing::RegressionSpec(R"(
methods for m {
    sample:   epoch_shuffle(batch: 1)
    infer: sequential [ norm(rms), shared(norm1), linear(4, 1) ]
    backward: autodiff(mode: reverse)
    update:   sgd(lr: 0.1)
}
)"));
  const ForwardGraph forward = ExpandForward(module, module.methods[0], 1);
  ASSERT_EQ(forward.parameters.size(), 3u);  // one gain, the last layer's weight and bias
  EXPECT_EQ(forward.parameters[0].name, "norm1_gain");
  Graph g = forward.graph;
  std::vector<Array> values;
  for (NodeId id : g.inputs()) {
    const tensor::Node& node = g.node(id);
    Array a = Array::Zeros(node.dtype, node.shape);
    if (node.name == "x") a.floats = {1, 2, 3, 4};
    if (node.name == "y" || node.name == "mask") a.floats = {1};
    if (node.name == "norm1_gain") a.floats = {1, 0.5, 2, 1};
    if (node.name == "linear1_weight") a.floats = {0.3, -1, 0.7, 0.2};
    values.push_back(std::move(a));
  }
  const std::vector<NodeId> wrt = {forward.parameter_nodes[0]};
  const auto gradients = tensor::Differentiate(g, forward.loss, wrt);
  const Numbers exact =
      EvaluateNodes(g, values, gradients.nodes, tensor::Precision::kOracle)[0].floats;
  // By differences, with both norms moved at once.
  for (size_t i = 0; i < 4; ++i) {
    Numbers loss;
    for (const double h : {1e-5, -1e-5}) {
      std::vector<Array> moved = values;
      for (size_t k = 0; k < moved.size(); ++k) {
        if (g.node(g.inputs()[k]).name == "norm1_gain") moved[k].floats[i] += h;
      }
      loss.push_back(
          EvaluateNodes(g, moved, std::vector{gradients.loss}, tensor::Precision::kOracle)[0]
              .floats[0]);
    }
    EXPECT_NEAR(exact[i], (loss[0] - loss[1]) / 2e-5, 1e-6);
  }
}

}  // namespace
}  // namespace l3c::l2
