// What goals and losses of every kind mean: values against hand computation, models that read one
// another, turns.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/front.h"
#include "layers/l2/lower.h"
#include "layers/l2/objective.h"
#include "layers/l3/parse.h"
#include "layers/l3/verify.h"
#include "layers/tensor/differentiate.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using testing::ReadSpec;

using tensor::Array;
using tensor::DType;
using tensor::NodeId;
using testing::Errors;
using testing::Read;

std::string MethodsFor(const std::string& model, const std::string& infer,
                       const std::string& rest = "") {
  return "methods for " + model + " { sample: epoch_shuffle(batch: 2)\n infer: " + infer +
         "\n backward: autodiff(mode: reverse)\n update: sgd(lr: 0.1)\n " + rest + " }\n";
}

// One model of two numbers to two, y = x·W + b, and a loss of one term.
std::string Pair(const std::string& term, const std::string& rest = "") {
  return "data d { x : tensor(f32, [2]) y : tensor(f32, [2]) z : tensor(f32, [2]) }\n"
         "model m { in: d.x out: tensor(f32, [2]) }\nloss l { t: " +
         term + " }\ngoal: minimize(l)\n" + MethodsFor("m", "linear(2, 2)", rest);
}

// Rows of the fields by name, then the mask (all rows), then W = I and b = 0 for each model.
double LossOf(const Module& module, const std::vector<std::vector<double>>& fields,
              size_t turn = 0) {
  ForwardGraph forward = ExpandForward(module, module.methods[0], 2);
  EXPECT_EQ(forward.fields.size(), fields.size());
  std::vector<Array> inputs;
  for (size_t f = 0; f < forward.fields.size(); ++f) {
    const auto& node = forward.graph.node(forward.fields[f].node);
    inputs.push_back(tensor::IsFloat(node.dtype)
                         ? Array::Floats(node.dtype, node.shape, fields[f])
                         : Array::Ints(node.dtype, node.shape,
                                       std::vector<int64_t>(fields[f].begin(), fields[f].end())));
  }
  inputs.push_back(Array::Floats(DType::kF32, {2}, {1, 1}));
  for (const Parameter& p : forward.parameters) {
    std::vector<double> values(tensor::NumElements(p.shape), 0);
    if (p.shape.size() == 2) {
      for (int64_t i = 0; i < std::min(p.shape[0], p.shape[1]); ++i) {
        values[i * p.shape[1] + i] = 1;
      }
    }
    inputs.push_back(Array::Floats(DType::kF32, p.shape, values));
  }
  return tensor::EvaluateNodes(forward.graph, inputs, std::vector{forward.turns.at(turn).loss},
                               tensor::Precision::kOracle)[0]
      .floats[0];
}

const std::vector<double> kX = {3, -4, 1, 2};
const std::vector<double> kY = {0, 1, 1, 1};
const std::vector<double> kZ = {2, 0, -1, 5};

TEST(L2Goals, ContrastiveLosses) {
  const std::string term = "contrastive(m.out, m(d.y), m(d.z))";
  auto square = [](double a, double b) { return a * a + b * b; };
  const double near[] = {square(3, -5), square(0, 1)};
  const double far[] = {square(1, -4), square(2, -3)};
  EXPECT_NEAR(LossOf(Read(Pair(term, "loss: triplet(margin: 2)")), {kX, kY, kZ}),
              (std::max(near[0] - far[0] + 2, 0.0) + std::max(near[1] - far[1] + 2, 0.0)) / 2,
              1e-5);
  double sum = 0;
  for (int r = 0; r < 2; ++r) {
    auto cosine = [&](const std::vector<double>& v) {
      const double dot = kX[2 * r] * v[2 * r] + kX[2 * r + 1] * v[2 * r + 1];
      return dot / std::sqrt(square(kX[2 * r], kX[2 * r + 1]) * square(v[2 * r], v[2 * r + 1]));
    };
    const double p = std::exp(cosine(kY) / 0.5);
    const double n = std::exp(cosine(kZ) / 0.5);
    sum -= std::log(p / (p + n));
  }
  EXPECT_NEAR(LossOf(Read(Pair(term, "loss: info_nce(temperature: 0.5)")), {kX, kY, kZ}), sum / 2,
              1e-5);
  // One set of parameters, whatever the model is applied to.
  const Module module = Read(Pair(term));
  EXPECT_EQ(ExpandForward(module, module.methods[0], 2).parameters.size(), 2u);
}

TEST(L2Goals, ConstraintsCostByHowMuchTheyFail) {
  // Outputs (3, −4) and (1, 2).
  struct Case {
    const char* predicate;
    double penalty;
  };
  for (const Case& c : {
           Case{"m.out <= 1", (2 + 0 + 0 + 1) / 4.0},
           Case{"sum(m.out) >= 2", (3 + 0) / 2.0},
           Case{"m.out == 2", (1 + 6 + 1 + 0) / 4.0},
           Case{"m.out != 2", 1 / 4.0},
           Case{"m.out < 1 && m.out > 0", ((2 + 4) + (0 + 1)) / 4.0},
           Case{"m.out < 1 || m.out > 2", (0 + 0 + 0 + 0) / 4.0},
           Case{"!(m.out > 1)", (2 + 0 + 0 + 1) / 4.0},
           Case{"m.out <= d.y", (3 + 0 + 0 + 1) / 4.0},
           Case{"max(m.out, d.y) <= 1", (2 + 0 + 0 + 1) / 4.0},
           Case{"norm(m.out) <= 5", 0},
           Case{"norm(m.params) <= 1", std::sqrt(2.0) - 1},
       }) {
    const bool reads_y = std::string(c.predicate).find("d.y") != std::string::npos;
    const auto fields =
        reads_y ? std::vector<std::vector<double>>{kX, kY} : std::vector<std::vector<double>>{kX};
    EXPECT_NEAR(LossOf(Read(Pair("constraint(" + std::string(c.predicate) + ")")), fields),
                c.penalty, 1e-6)
        << c.predicate;
  }
}

TEST(L2Goals, CustomLossesComputeTheirExpression) {
  auto mean = [&](auto f) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += f(kX[i], kY[i]);
    return sum / 4;
  };
  const std::string reads = "custom(c, reads: [m.out, d.y], value: ";
  EXPECT_NEAR(LossOf(Read(Pair(reads + "softplus(-m.out * (2 * d.y - 1)))")), {kX, kY}),
              mean([](double x, double y) { return std::log1p(std::exp(-x * (2 * y - 1))); }),
              1e-5);
  EXPECT_NEAR(
      LossOf(Read(Pair(reads + "where(abs(m.out - d.y) < 2, square(m.out - d.y), 4))")), {kX, kY}),
      mean([](double x, double y) { return std::abs(x - y) < 2 ? (x - y) * (x - y) : 4; }), 1e-5);
  // A row's greatest number fits every shape of the row.
  EXPECT_NEAR(LossOf(Read(Pair(reads + "m.out - max(m.out) + 0 * d.y)")), {kX, kY}),
              ((0 - 7) + (-1 + 0)) / 4.0, 1e-6);
  // A model applied to something else is a value like any other.
  EXPECT_NEAR(LossOf(Read(Pair("custom(c, reads: [m(d.y)], value: sum(m(d.y)))")), {kX, kY}), 1.5,
              1e-6);
}

TEST(L2Goals, NormsOfActivationsRunOverEveryStage) {
  std::string text = Pair("norm(m.activations, p=1)");
  text.replace(text.find("linear(2, 2)"), 12, "sequential [ linear(2, 2), relu, linear(2, 2) ]");
  // Hidden (3, 0) and (1, 2), and the same again from the last stage.
  EXPECT_NEAR(LossOf(Read(text), {kX}), (6 + 6) / 2.0, 1e-6);
}

TEST(L2Goals, AValueCanBeTheGoal) {
  const std::string text =
      "data d { x : tensor(f32, [2]) }\nmodel m { in: d.x out: scalar(f32) }\n"
      "goal: maximize(m.out)\n" +
      MethodsFor("m", "linear(2, 1)");
  EXPECT_NEAR(LossOf(Read(text), {kX}), -(3 + 1) / 2.0, 1e-6);
}

constexpr char kGan[] = R"(
data d {
    noise : tensor(f32, [2])
    image : tensor(f32, [2])
}
model generate { in: d.noise out: tensor(f32, [2]) }
model judge    { in: d.image out: scalar(f32) }
loss tell {
    real: custom(real, reads: [judge.out], value: softplus(-judge.out))
    fake: custom(fake, reads: [judge(generate.out)], value: softplus(judge(generate.out)))
}
loss fool {
    fake: custom(fooled, reads: [judge(generate.out)], value: softplus(-judge(generate.out)))
}
goal: alternate([minimize(tell, models: [judge]), minimize(fool, models: [generate])])
)";

TEST(L2Goals, TurnsUpdateTheModelsThatTheyName) {
  const Module module = Read(std::string(kGan) + MethodsFor("generate", "linear(2, 2)") +
                             MethodsFor("judge", "linear(2, 1)"));
  const ForwardGraph forward = ExpandForward(module, module.methods[0], 2);
  ASSERT_EQ(forward.turns.size(), 2u);
  ASSERT_EQ(forward.parameters.size(), 4u);
  EXPECT_EQ(forward.parameters[0].name, "generate_linear1_weight");
  EXPECT_EQ(forward.turns[0].parameters, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(forward.turns[1].parameters, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(forward.metrics[1].name, "fool_loss");
  auto softplus = [](double v) { return std::log1p(std::exp(v)); };
  // The judge reads the first number of each row.
  const std::vector<double> noise = {0.5, 1, -2, 0};
  const std::vector<double> image = {3, 0, 1, 0};
  // Fields come in the order in which they are read: the generator's first.
  EXPECT_NEAR(LossOf(module, {noise, image}, 0),
              (softplus(-3) + softplus(-1)) / 2 + (softplus(0.5) + softplus(-2)) / 2, 1e-5);
  EXPECT_NEAR(LossOf(module, {noise, image}, 1), (softplus(-0.5) + softplus(2)) / 2, 1e-5);
  EXPECT_EQ(PrintModule(Read(PrintModule(module))), PrintModule(module));
}

TEST(L2Goals, SeveralInputsAreJoined) {
  const std::string text =
      "data d { x : tensor(f32, [2]) n : scalar(u8) y : scalar(f32) }\n"
      "model m { in: [d.x, d.n] out: scalar(f32) }\n"
      "loss l { t: divergence(m.out, d.y) }\ngoal: minimize(l)\n" +
      MethodsFor("m", "sequential [ linear(3, 3), linear(3, 1) ]");
  // The first of three numbers is the output.
  EXPECT_NEAR(LossOf(Read(text), {kX, {7, 8}, {1, 1}}), (4 + 0) / 2.0, 1e-6);
}

TEST(L2Goals, WhatCannotBeComputedIsRefusedWithAWayOut) {
  EXPECT_NE(Errors(Pair("custom(c, reads: [m.out])")).find("add 'value: EXPRESSION'"),
            std::string::npos);
  EXPECT_NE(Errors(Pair("custom(c, reads: [m.out, m.params], value: m.out + m.params)"))
                .find("write norm(m.params)"),
            std::string::npos);
  EXPECT_NE(Errors(Pair("custom(c, reads: [m.out], value: reshape(m.out, [2, 1]))"))
                .find("which an expression over rows cannot"),
            std::string::npos);
  const std::string shapes = Errors(
      "data d { x : tensor(f32, [2]) y : tensor(f32, [3]) }\n"
      "model m { in: d.x out: tensor(f32, [2]) }\n"
      "loss l { t: custom(c, reads: [m.out, d.y], value: m.out - d.y) }\ngoal: minimize(l)\n" +
      MethodsFor("m", "linear(2, 2)"));
  EXPECT_NE(shapes.find("'-' joins rows of shapes [2] and [3]"), std::string::npos) << shapes;
  const std::string together =
      Errors(std::string(kGan) + MethodsFor("generate", "linear(2, 2)") +
             MethodsFor("judge", "linear(2, 1)", "phases [ main(epochs: 3) ]"));
  EXPECT_NE(together.find("differ in 'phases'"), std::string::npos) << together;
}

TEST(L2Goals, ThePointsOfAFrontCanBePicked) {
  std::string text(testing::kMnistSpec);
  text.replace(text.find("minimize(objective)"), 19, "pareto([objective.ce, objective.sparse])");
  const l3::Module spec = ReadSpec(text);
  const auto front = Front(spec);
  ASSERT_EQ(front.size(), 5u);
  EXPECT_EQ(front[1].label, "0.7 objective.ce + 0.3 objective.sparse");
  EXPECT_EQ(front[MiddleOf(front)].label, "0.5 objective.ce + 0.5 objective.sparse");
  for (const FrontPoint& point : front) EXPECT_NEAR(point.weights[0] + point.weights[1], 1, 1e-12);
  LowerConstraints constraints;
  constraints.pick = 4;
  search::LoweringOptions options;
  options.budget.top = 1;
  const auto result = LowerToL2(spec, constraints, options);
  ASSERT_TRUE(result.ok());
  const l3::Loss* loss = result.best().spec.FindLoss("front");
  ASSERT_NE(loss, nullptr);
  EXPECT_DOUBLE_EQ(loss->terms[0].weight, 0.3);
  EXPECT_DOUBLE_EQ(loss->terms[1].weight, 0.7 * 1e-4);
  EXPECT_EQ(result.explanation.decisions[0].id, "l2/goal.front");
  EXPECT_EQ(result.explanation.decisions[0].losers.size(), 4u);
  const std::string printed = PrintModule(result.best());
  EXPECT_EQ(PrintModule(Read(printed)), printed);
  constraints.pick = 6;
  EXPECT_FALSE(LowerToL2(spec, constraints, options).ok());
  constraints.pick = 1;
  EXPECT_FALSE(LowerToL2(ReadSpec(testing::kMnistSpec), constraints, options).ok());
}

TEST(L2Goals, MethodsOfSeveralModelsAreSearchedTogether) {
  search::LoweringOptions options;
  options.budget.top = 2;
  const auto result = LowerToL2(ReadSpec(kGan), {}, options);
  ASSERT_TRUE(result.ok());
  for (const auto& candidate : result.candidates) {
    const std::string printed = PrintModule(candidate.target);
    EXPECT_EQ(PrintModule(Read(printed)), printed);
  }
  EXPECT_NE(result.explanation.Find("l2/judge/depth"), nullptr);
}

}  // namespace
}  // namespace l3c::l2
