// Updates against their formulas, step by step in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/updates.h"
#include "layers/support/parser.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using tensor::Array;
using tensor::DType;

// Two parameters under fixed gradients.
const std::vector<Parameter> kParameters = {{"a", {2}, Init::kZeros, 0},
                                            {"b", {1}, Init::kZeros, 0}};

std::vector<double> GradientAt(int step) {
  return {0.3 * std::sin(1.0 + step), -0.7 + 0.1 * step, 2.0 / (1 + step)};
}

// The parameters (a0, a1, b0) after each step, and the names of what is kept.
std::vector<std::vector<double>> RunUpdate(const std::string& text, int steps, int64_t total) {
  const UpdateGraph update =
      ExpandUpdate(testing::ReadForm(text, Family::kUpdate), kParameters, total);
  std::map<std::string, Array> values;
  for (tensor::NodeId id : update.graph.inputs()) {
    const tensor::Node& node = update.graph.node(id);
    values[node.name] = Array::Zeros(node.dtype, node.shape);
  }
  values["a"].floats = {1, -2};
  values["b"].floats = {0.5};
  std::vector<std::vector<double>> history;
  for (int step = 0; step < steps; ++step) {
    const auto g = GradientAt(step);
    values["a_grad"].floats = {g[0], g[1]};
    values["b_grad"].floats = {g[2]};
    std::vector<Array> inputs;
    for (tensor::NodeId id : update.graph.inputs()) {
      inputs.push_back(values[update.graph.node(id).name]);
    }
    const auto outputs = tensor::Evaluate(update.graph, inputs, tensor::Precision::kOracle);
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[update.graph.outputs()[i].name] = outputs[i];
    }
    EXPECT_EQ(values["step"].ints[0], step + 1);
    history.push_back({values["a"].floats[0], values["a"].floats[1], values["b"].floats[0]});
  }
  return history;
}

void ExpectSame(const std::vector<std::vector<double>>& found,
                const std::vector<std::vector<double>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t s = 0; s < found.size(); ++s) {
    // Coefficients such as 0.9 are f32, the arithmetic is f64.
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[s][i], expected[s][i], 1e-6) << s << " " << i;
  }
}

std::vector<std::vector<double>> Adam(int steps, const std::vector<double>& rates) {
  std::vector<double> p = {1, -2, 0.5}, m(3, 0), v(3, 0);
  std::vector<std::vector<double>> history;
  for (int step = 0; step < steps; ++step) {
    const auto g = GradientAt(step);
    for (int i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(0.9, step + 1));
      const double square = v[i] / (1 - std::pow(0.999, step + 1));
      p[i] -= rates[step] * mean / (std::sqrt(square) + 1e-8);
    }
    history.push_back(p);
  }
  return history;
}

TEST(L2Updates, AdamCorrectsItsBias) {
  ExpectSame(RunUpdate("adam(lr: 0.01)", 10, 100), Adam(10, std::vector<double>(10, 0.01)));
}

TEST(L2Updates, SgdWithAndWithoutMomentum) {
  std::vector<double> p = {1, -2, 0.5}, q = p, v(3, 0);
  std::vector<std::vector<double>> plain, heavy;
  for (int step = 0; step < 5; ++step) {
    const auto g = GradientAt(step);
    for (int i = 0; i < 3; ++i) {
      p[i] -= 0.1 * g[i];
      v[i] = 0.9 * v[i] + g[i];
      q[i] -= 0.1 * v[i];
    }
    plain.push_back(p);
    heavy.push_back(q);
  }
  ExpectSame(RunUpdate("sgd(lr: 0.1)", 5, 100), plain);
  ExpectSame(RunUpdate("sgd(lr: 0.1, momentum: 0.9)", 5, 100), heavy);
}

TEST(L2Updates, TheScheduleWarmsUpAndDecays) {
  const int total = 10;
  for (const std::string decay : {"cosine", "linear", "constant"}) {
    std::vector<double> rates;
    for (int s = 0; s < total; ++s) {
      const double q = std::clamp((s - 3) / 7.0, 0.0, 1.0);
      const double factor = decay == "cosine"   ? 0.5 * (1 + std::cos(std::numbers::pi * q))
                            : decay == "linear" ? 1 - q
                                                : 1;
      rates.push_back(0.01 * std::min((s + 1) / 3.0, 1.0) * factor);
    }
    ExpectSame(
        RunUpdate("schedule(warmup: 3, decay: " + decay + ", inner: adam(lr: 0.01))", total, total),
        Adam(total, rates));
  }
}

TEST(L2Updates, ClippingScalesAllGradientsTogether) {
  std::vector<double> p = {1, -2, 0.5};
  std::vector<std::vector<double>> expected;
  for (int step = 0; step < 6; ++step) {
    const auto g = GradientAt(step);
    const double norm = std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    for (int i = 0; i < 3; ++i) p[i] -= 0.1 * g[i] * std::min(1.0, 0.6 / norm);
    expected.push_back(p);
  }
  ExpectSame(RunUpdate("gradient_clip(max_norm: 0.6, inner: sgd(lr: 0.1))", 6, 100), expected);
}

TEST(L2Updates, StepScalarsAreExactInOwnPrecision) {
  // With f32 bias corrections the first move would be off by about 1e-4.
  const UpdateGraph update =
      ExpandUpdate(testing::ReadForm("adam(lr: 1.0, eps: 0.0)", Family::kUpdate), kParameters, 10);
  std::vector<Array> inputs;
  for (tensor::NodeId id : update.graph.inputs()) {
    const tensor::Node& node = update.graph.node(id);
    inputs.push_back(Array::Zeros(node.dtype, node.shape));
    if (node.name == "a_grad") inputs.back().floats = {0.5, -0.25};
    if (node.name == "b_grad") inputs.back().floats = {1};
  }
  const auto outputs = tensor::Evaluate(update.graph, inputs, tensor::Precision::kOwnDType);
  EXPECT_NEAR(outputs[0].floats[0], -1, 1e-6);
  EXPECT_NEAR(outputs[0].floats[1], 1, 1e-6);
}

TEST(L2Updates, NamesItsStateAfterParameterAndRole) {
  const UpdateGraph update =
      ExpandUpdate(testing::ReadForm("adam(lr: 1.0)", Family::kUpdate), kParameters, 10);
  std::vector<std::string> names;
  for (const auto& field : update.state) names.push_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a_m", "b_m", "a_v", "b_v"}));
}

}  // namespace
}  // namespace l3c::l2
