// The expansions of layers and losses against formulas written out here, in f64.
#include "layers/l2/expand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "layers/l2/estimate.h"
#include "layers/l2/infer.h"
#include "layers/l2/layers.h"
#include "layers/l2/losses.h"
#include "layers/support/units.h"
#include "layers/tensor/differentiate.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using testing::Read;

// A fixed sequence of numbers in (−1, 1), each an f32.
class Numbers {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(static_cast<double>(static_cast<int64_t>(state_)) / 9.3e18);
  }
  std::vector<double> Next(int64_t n) {
    std::vector<double> all;
    for (int64_t i = 0; i < n; ++i) all.push_back(Next());
    return all;
  }

 private:
  uint64_t state_ = 1;
};

std::vector<double> RunLayer(const std::string& text, const Shape& sample, std::vector<double> x,
                             int64_t batch, std::vector<std::vector<double>> parameters,
                             bool log = false) {
  support::SourceFile source("layer", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  const Form form = *ParseForm(parser, Family::kLayer);
  const LayerEntry& entry = *FindLayer(form.name);
  Graph g;
  Shape shape = sample;
  shape.insert(shape.begin(), batch);
  std::vector<Array> values = {Array::Floats(DType::kF32, shape, std::move(x))};
  const NodeId input = g.AddInput("x", DType::kF32, shape);
  std::vector<NodeId> nodes;
  if (entry.parameters) {
    for (const Parameter& p : entry.parameters(form, std::vector<Shape>{sample})) {
      nodes.push_back(g.AddInput(p.name, DType::kF32, p.shape));
      values.push_back(Array::Floats(DType::kF32, p.shape, parameters.at(nodes.size() - 1)));
    }
  }
  const auto& expand = log ? entry.expand_log : entry.expand;
  const NodeId y = expand(g, form, std::vector<NodeId>{input}, nodes);
  return tensor::EvaluateNodes(g, values, std::vector<NodeId>{y}, tensor::Precision::kOracle)[0]
      .floats;
}

// Operands and constants are f32, the arithmetic is f64.
constexpr double kExact = 1e-12;     // every constant is a power of two
constexpr double kConstants = 5e-8;  // some are rounded, such as log₂ e below every exp

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected,
                double tolerance = kExact) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

TEST(L2Layers, LinearContractsTheLastAxisOrFlattens) {
  Numbers numbers;
  const auto x = numbers.Next(12);
  const auto w = numbers.Next(12);
  const auto b = numbers.Next(2);
  // [2, 2, 3] by linear(3, 2): every vector of the last axis.
  std::vector<double> expected;
  for (int row = 0; row < 4; ++row) {
    for (int o = 0; o < 2; ++o) {
      double sum = b[o];
      for (int i = 0; i < 3; ++i) sum += x[row * 3 + i] * w[i * 2 + o];
      expected.push_back(sum);
    }
  }
  ExpectNear(RunLayer("linear(3, 2)", {2, 3}, x, 2, {{w.begin(), w.begin() + 6}, b}), expected);
  // [2, 2, 3] by linear(6, 2): a sample's six elements.
  expected.clear();
  for (int row = 0; row < 2; ++row) {
    for (int o = 0; o < 2; ++o) {
      double sum = b[o];
      for (int i = 0; i < 6; ++i) sum += x[row * 6 + i] * w[i * 2 + o];
      expected.push_back(sum);
    }
  }
  ExpectNear(RunLayer("linear(6, 2)", {2, 3}, x, 2, {w, b}), expected);
}

TEST(L2Layers, NormsFollowTheirFormulas) {
  Numbers numbers;
  // The reciprocal of 8 is exact, that of 5 is not.
  for (const int n : {8, 5}) {
    const auto x = numbers.Next(2 * n);
    const auto gain = numbers.Next(n);
    const auto offset = numbers.Next(n);
    const double epsilon = 1e-5f;
    std::vector<double> layer, rms;
    for (int row = 0; row < 2; ++row) {
      double mean = 0, variance = 0, squares = 0;
      for (int i = 0; i < n; ++i) mean += x[row * n + i] / n;
      for (int i = 0; i < n; ++i) variance += std::pow(x[row * n + i] - mean, 2) / n;
      for (int i = 0; i < n; ++i) squares += std::pow(x[row * n + i], 2) / n;
      for (int i = 0; i < n; ++i) {
        layer.push_back((x[row * n + i] - mean) / std::sqrt(variance + epsilon) * gain[i] +
                        offset[i]);
        rms.push_back(x[row * n + i] / std::sqrt(squares + epsilon) * gain[i]);
      }
    }
    const double tolerance = n == 8 ? kExact : kConstants;
    ExpectNear(RunLayer("norm(layer)", {n}, x, 2, {gain, offset}), layer, tolerance);
    ExpectNear(RunLayer("norm(rms)", {n}, x, 2, {gain}), rms, tolerance);
  }
}

TEST(L2Layers, ActivationsFollowTheirFormulas) {
  const std::vector<double> x = {-30, -1.5, 0, 0.25, 3, 40};
  std::vector<double> relu, gelu, silu;
  for (double v : x) {
    relu.push_back(std::max(v, 0.0));
    gelu.push_back(0.5 * v *
                   (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))));
    silu.push_back(v / (1 + std::exp(-v)));
  }
  ExpectNear(RunLayer("relu", {6}, x, 1, {}), relu);
  ExpectNear(RunLayer("act(gelu)", {6}, x, 1, {}), gelu, kConstants);
  ExpectNear(RunLayer("silu", {6}, x, 1, {}), silu, kConstants);
  ExpectNear(RunLayer("swish", {6}, x, 1, {}), silu, kConstants);
}

TEST(L2Layers, SoftmaxIsStable) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto p = RunLayer("softmax", {3}, {1000, 999, -inf}, 1, {});
  const double e = std::exp(-1.0);
  ExpectNear(p, {1 / (1 + e), e / (1 + e), 0}, kConstants);
  const auto log = RunLayer("softmax", {2}, {0, -5000}, 1, {}, true);
  ExpectNear(log, {0, -5000}, kConstants);
  // A row that is −∞ throughout has no distribution.
  for (double v : RunLayer("softmax", {2}, {-inf, -inf}, 1, {})) EXPECT_TRUE(std::isnan(v));
}

// A module whose network is a bare softmax of two logits, and its loss and metrics on given rows.
struct Evaluated {
  double loss = 0;
  double accuracy = 0;
};
Evaluated EvaluateCe(const std::string& loss, const std::vector<double>& logits,
                     const std::vector<int64_t>& labels, const std::vector<double>& mask,
                     int classes) {
  const std::string n = std::to_string(classes);
  const Module module = Read(
      "data d { x : tensor(f32, [" + n + "]) y : tensor(u8, [1]) }\n" +
      "model m { in: d.x out: dist(" + n + ") }\n" +
      "loss l { ce: divergence(m.out, d.y) }\n goal: minimize(l)\n" +
      "methods for m { sample: epoch_shuffle(batch: 4)\n infer: sequential [ linear(" + n + ", " +
      n + "), softmax ]\n backward: autodiff(mode: reverse)\n update: sgd(lr: 0.1)\n loss: " +
      loss + " }");
  const int64_t batch = static_cast<int64_t>(labels.size());
  ForwardGraph forward = ExpandForward(module, module.methods[0], batch);
  std::vector<double> identity(classes * classes, 0);
  for (int i = 0; i < classes; ++i) identity[i * classes + i] = 1;
  const std::vector<Array> inputs = {
      Array::Floats(DType::kF32, {batch, classes}, logits),
      Array::Ints(DType::kU8, {batch, 1}, labels),
      Array::Floats(DType::kF32, {batch}, mask),
      Array::Floats(DType::kF32, {classes, classes}, identity),
      Array::Zeros(DType::kF32, {classes}),
  };
  std::vector<NodeId> nodes = {forward.loss};
  for (const MetricNodes& metric : forward.metrics) {
    nodes.push_back(metric.numerator);
    nodes.push_back(metric.denominator);
  }
  EXPECT_EQ(forward.metrics.at(1).name, "accuracy");
  const auto values =
      tensor::EvaluateNodes(forward.graph, inputs, nodes, tensor::Precision::kOracle);
  return {values[0].floats[0], values[3].floats[0] / values[4].floats[0]};
}

double LogSoftmax(const std::vector<double>& row, int at) {
  double sum = 0;
  for (double v : row) sum += std::exp(v - row[at]);
  return -std::log(sum);
}

TEST(L2Losses, CrossEntropyIsTheMeanOverRealRows) {
  const std::vector<double> a = {1, 2, 0.5};
  const std::vector<double> b = {-1, 3, 2};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto found =
      EvaluateCe("ce", {1, 2, 0.5, -1, 3, 2, nan, nan, nan}, {1, 2, 0}, {1, 1, 0}, 3);
  EXPECT_NEAR(found.loss, -(LogSoftmax(a, 1) + LogSoftmax(b, 2)) / 2, kConstants);
  EXPECT_EQ(found.accuracy, 0.5);
}

TEST(L2Losses, LabelSmoothingSpreadsSomeOfTheTarget) {
  const std::vector<double> a = {1, 2, 0.5, -1};
  double even = 0;
  for (int i = 0; i < 4; ++i) even += LogSoftmax(a, i) / 4;
  EXPECT_NEAR(EvaluateCe("ce(label_smoothing: 0.125)", a, {1}, {1}, 4).loss,
              -(0.875 * LogSoftmax(a, 1) + 0.125 * even), kConstants);
  EXPECT_NEAR(EvaluateCe("ce(label_smoothing: 0.1)", a, {1}, {1}, 4).loss,
              -(0.9 * LogSoftmax(a, 1) + 0.1 * even), kConstants);
}

TEST(L2Losses, IgnoredLabelsCountNothing) {
  const std::vector<double> a = {1, 2, 0.5};
  const auto one = EvaluateCe("ce(ignore_index: 2)", {1, 2, 0.5, 9, 9, 0}, {1, 2}, {1, 1}, 3);
  EXPECT_NEAR(one.loss, -LogSoftmax(a, 1), kConstants);
  const auto all = EvaluateCe("ce(ignore_index: 2)", {1, 2, 0.5, 9, 9, 0}, {2, 2}, {1, 1}, 3);
  EXPECT_EQ(all.loss, 0);
}

TEST(L2Metrics, IgnoredLabelsAreNeitherRightNorWrong) {
  const std::vector<double> logits = {1, 2, 0.5, 9, 9, 0, 4, 0, 0, 0, 0, 4};
  // Right, ignored, wrong, padding.
  EXPECT_EQ(EvaluateCe("ce(ignore_index: 9)", logits, {1, 9, 1, 2}, {1, 1, 1, 0}, 3).accuracy, 0.5);
  // A class may be the one that is ignored.
  EXPECT_EQ(EvaluateCe("ce(ignore_index: 0)", logits, {1, 0, 1, 2}, {1, 1, 1, 0}, 3).accuracy, 0.5);
}

TEST(L2Losses, AnImprobableLabelCostsItsLogitDistance) {
  EXPECT_NEAR(EvaluateCe("ce", {0, -5000}, {1}, {1}, 2).loss, 5000, 1e-3);
}

TEST(L2Metrics, OfEqualProbabilitiesTheLowestClassIsTheGuess) {
  EXPECT_EQ(EvaluateCe("ce", {1, 1, 0, 1, 1, 0}, {0, 1}, {1, 1}, 3).accuracy, 0.5);
}

TEST(L2Losses, TheNormTermsFollowTheirFormulas) {
  for (const double p : {1.0, 1.5, 2.0, 3.0, 4.0}) {
    const std::string text = support::PrintReal(p);
    const Module module = Read(
        "data d { x : tensor(f32, [2]) y : tensor(f32, [2]) }\n"
        "model m { in: d.x out: tensor(f32, [2]) }\n"
        "loss l { fit: divergence(m.out, d.y), weight: 2.0\n"
        "  small: norm(m.params, p=" +
        text + "), weight: 0.5\n" + "  low: norm(m.out, p=" + text +
        "), weight: 0.25 }\n goal: minimize(l)\n" +
        "methods for m { sample: epoch_shuffle(batch: 2)\n infer: linear(2, 2)\n"
        " backward: autodiff(mode: reverse)\n update: sgd(lr: 0.1) }");
    ForwardGraph forward = ExpandForward(module, module.methods[0], 2);
    const std::vector<Array> inputs = {
        Array::Floats(DType::kF32, {2, 2}, {1, 0, 0, 1}),
        Array::Floats(DType::kF32, {2, 2}, {0, 0, 1, 1}),
        Array::Floats(DType::kF32, {2}, {1, 1}),
        Array::Floats(DType::kF32, {2, 2}, {3, -4, 1, 2}),
        Array::Floats(DType::kF32, {2}, {0, 0}),
    };
    const double loss = tensor::EvaluateNodes(forward.graph, inputs, std::vector{forward.loss},
                                              tensor::Precision::kOracle)[0]
                            .floats[0];
    // Outputs (3, −4) and (1, 2); targets (0, 0) and (1, 1).
    const double fit = ((9 + 16) / 2.0 + (0 + 1) / 2.0) / 2;
    auto norm = [&](const std::vector<double>& values) {
      double sum = 0;
      for (double v : values) sum += std::pow(std::abs(v), p);
      return std::pow(sum, 1 / p);
    };
    const double small = norm({3, -4, 1, 2});
    const double low = (norm({3, -4}) + norm({1, 2})) / 2;
    // One over 1.5 or 3 is rounded.
    const double tolerance = p == 1 || p == 2 || p == 4 ? 1e-10 : 1e-6;
    EXPECT_NEAR(loss, 2 * fit + 0.5 * small + 0.25 * low, tolerance) << p;
  }
}

// Slopes of a norm of parameters and of outputs where values are zero, alone and all together.
TEST(L2Gradients, OfNormsAreFiniteAtZero) {
  for (const double p : {1.0, 1.5, 2.0, 3.0}) {
    for (const bool zeros : {false, true}) {
      const Module module = Read(
          "data d { x : tensor(f32, [2]) }\n model m { in: d.x out: tensor(f32, [2]) }\n"
          "loss l { small: norm(m.params, p=" +
          support::PrintReal(p) + ")\n  low: norm(m.out, p=" + support::PrintReal(p) +
          "), weight: 0 }\n goal: minimize(l)\n"
          "methods for m { sample: epoch_shuffle(batch: 2)\n infer: linear(2, 2)\n"
          " backward: autodiff(mode: reverse)\n update: sgd(lr: 0.1) }");
      ForwardGraph forward = ExpandForward(module, module.methods[0], 2);
      const std::vector<double> weights =
          zeros ? std::vector<double>(4, 0) : std::vector<double>{3, 0, -1.5, 0};
      const std::vector<Array> inputs = {
          Array::Floats(DType::kF32, {2, 2}, {0, 0, 1, 1}),
          Array::Floats(DType::kF32, {2}, {1, 1}),
          Array::Floats(DType::kF32, {2, 2}, weights),
          Array::Floats(DType::kF32, {2}, {0, 0}),
      };
      Graph graph = forward.graph;
      const auto gradients = tensor::Differentiate(graph, forward.loss, forward.parameter_nodes);
      for (const auto precision : {tensor::Precision::kOracle, tensor::Precision::kOwnDType}) {
        const auto found = tensor::EvaluateNodes(graph, inputs, gradients.nodes, precision);
        double sum = 0;
        for (double w : weights) sum += std::pow(std::abs(w), p);
        for (size_t i = 0; i < weights.size(); ++i) {
          const double w = weights[i];
          const double slope =
              w == 0 ? 0
                     : std::copysign(std::pow(std::abs(w), p - 1), w) * std::pow(sum, 1 / p - 1);
          EXPECT_NEAR(found[0].floats[i], slope, 1e-6) << p << " " << i;
        }
        for (double slope : found[1].floats) EXPECT_EQ(slope, 0) << p;
      }
    }
  }
}

// d loss / d parameter of a whole method against central differences.
TEST(L2Gradients, AgreeWithFiniteDifferences) {
  const Module module = Read(
      "data d { x : tensor(f32, [2, 2]) y : tensor(u8, [1]) }\n"
      "model m { in: d.x out: dist(3) }\n"
      "loss l { ce: divergence(m.out, d.y)\n"
      "  small: norm(m.params, p=2), weight: 0.1 }\n goal: minimize(l)\n"
      "methods for m { sample: epoch_shuffle(batch: 3)\n infer: sequential [ linear(4, 5), "
      "norm(layer), gelu, residual [ sequential [ linear(5, 5), norm(rms), silu ] ], linear(5, 3), "
      "softmax ]\n backward: autodiff(mode: reverse)\n update: sgd(lr: 0.1)\n"
      "  loss: ce(label_smoothing: 0.1) }");
  ForwardGraph forward = ExpandForward(module, module.methods[0], 3);
  Numbers numbers;
  std::vector<Array> inputs = {
      Array::Floats(DType::kF32, {3, 2, 2}, numbers.Next(12)),
      Array::Ints(DType::kU8, {3, 1}, {0, 2, 1}),
      Array::Floats(DType::kF32, {3}, {1, 0, 1}),
  };
  for (const Parameter& p : forward.parameters) {
    inputs.push_back(
        Array::Floats(DType::kF32, p.shape, numbers.Next(tensor::NumElements(p.shape))));
  }
  Graph graph = forward.graph;
  const auto gradients = tensor::Differentiate(graph, forward.loss, forward.parameter_nodes);
  const auto analytic =
      tensor::EvaluateNodes(graph, inputs, gradients.nodes, tensor::Precision::kOracle);
  auto loss = [&] {
    return tensor::EvaluateNodes(forward.graph, inputs, std::vector{forward.loss},
                                 tensor::Precision::kOracle)[0]
        .floats[0];
  };
  for (size_t p = 0; p < forward.parameters.size(); ++p) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < analytic[p].floats.size(); ++i) {
      double& x = inputs[3 + p].floats[i];
      const double before = x;
      const double h = 1e-5;
      x = before + h;
      const double above = loss();
      x = before - h;
      const double below = loss();
      x = before;
      const double numeric = (above - below) / (2 * h);
      error += std::pow(numeric - analytic[p].floats[i], 2);
      norm += numeric * numeric;
    }
    EXPECT_LE(std::sqrt(error), 1e-6 * std::max(std::sqrt(norm), 1e-3))
        << forward.parameters[p].name;
  }
}

TEST(L2Estimate, CountsWhatTheLayersDo) {
  const Module module =
      Read(std::string(testing::kMnistSpec) + std::string(testing::kMnistMethods));
  const MethodEstimate estimate = EstimateMethod(module.methods[0]);
  EXPECT_EQ(estimate.parameters, 270346);
  EXPECT_EQ(estimate.batch, 128);
  const double contractions = 2.0 * (784 * 256 + 256 * 256 + 256 * 10);
  EXPECT_EQ(estimate.step.contraction_flops, 3 * 128 * contractions);
  EXPECT_GT(estimate.forward_flops, contractions);
  EXPECT_EQ(estimate.state_bytes, 2 * 4.0 * 270346);
  EXPECT_EQ(TotalSteps(module.methods[0], 60000), 4690);
}

// Epochs times the steps of one must not wrap around.
TEST(L2Estimate, MoreStepsThanCanBeCountedAreNoNumber) {
  Methods methods =
      Read(std::string(testing::kMnistSpec) + std::string(testing::kMnistMethods)).methods[0];
  methods.phases[0].epochs = int64_t{1} << 40;
  EXPECT_EQ(TotalSteps(methods, 128), int64_t{1} << 40);
  EXPECT_EQ(TotalSteps(methods, 129), std::nullopt);
  EXPECT_EQ(TotalSteps(methods, int64_t{1} << 62), std::nullopt);
  methods.phases.push_back(methods.phases[0]);
  EXPECT_EQ(TotalSteps(methods, 128), std::nullopt);
}

}  // namespace
}  // namespace l3c::l2
