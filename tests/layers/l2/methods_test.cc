// Infer, backward and sample methods against what they are defined to be, in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "layers/l2/backward.h"
#include "layers/l2/expand.h"
#include "layers/l2/infer.h"
#include "layers/l2/methods.h"
#include "layers/tensor/interpreter.h"
#include "layers/tensor/philox.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using testing::Errors;
using testing::Read;
using Numbers = std::vector<double>;

std::string Program(const std::string& x, const std::string& y, const std::string& out,
                    const std::string& methods) {
  return "data d {\n    x : " + x + "\n    y : " + y +
         "\n}\nmodel m {\n    in:  d.x\n    out: " + out +
         "\n    properties: []\n}\nloss l {\n    fit: divergence(m.out, d.y), weight: 1.0\n"
         "    combine: weighted_sum\n}\ngoal: minimize(l)\nmethods for m {\n" +
         methods + "\n}\n";
}

std::string Lines(const std::string& infer, const std::string& backward = "autodiff(mode: reverse)",
                  const std::string& more = "",
                  const std::string& sample = "epoch_shuffle(batch: 3)") {
  return "sample: " + sample + "\ninfer: " + infer + "\nbackward: " + backward +
         "\nupdate: sgd(lr: 0.1)\n" + more;
}

// Values for a graph's inputs: normal numbers from their names, labels 0, 1, 2, …, all rows real.
std::vector<Array> Inputs(const Graph& g, int64_t step) {
  std::vector<Array> all;
  for (NodeId id : g.inputs()) {
    const tensor::Node& node = g.node(id);
    Array a = Array::Zeros(node.dtype, node.shape);
    if (node.name == "step") a.ints = {step};
    if (!tensor::IsFloat(node.dtype) && node.name != "step")
      std::iota(a.ints.begin(), a.ints.end(), 0);
    uint64_t key = 7;
    for (char c : node.name) key = key * 31 + static_cast<unsigned char>(c);
    tensor::PhiloxStream random(key);
    for (double& v : a.floats) v = node.name == "mask" ? 1 : 0.7 * random.NextNormal();
    all.push_back(std::move(a));
  }
  return all;
}

Numbers Evaluate(const Graph& g, NodeId node, int64_t step = 0) {
  return tensor::EvaluateNodes(g, Inputs(g, step), std::vector{node}, tensor::Precision::kOracle)[0]
      .floats;
}

Numbers Input(const Graph& g, const std::string& name) {
  const auto values = Inputs(g, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (g.node(g.inputs()[i]).name == name) return values[i].floats;
  }
  ADD_FAILURE() << "no input " << name;
  return {};
}

void ExpectNear(const Numbers& found, const Numbers& expected, double tolerance = 2e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

// x·W + b for one row.
Numbers Linear(const Numbers& x, const Numbers& w, const Numbers& b) {
  Numbers y = b;
  for (size_t o = 0; o < b.size(); ++o) {
    for (size_t i = 0; i < x.size(); ++i) y[o] += x[i] * w[i * b.size() + o];
  }
  return y;
}

TEST(L2Infer, ARecurrenceIsItsCellAtEveryElementWithOneSetOfWeights) {
  const Module module =
      Read(Program("sequence(scalar(f32), 4)", "tensor(f32, [2])", "tensor(f32, [2])",
                   Lines("recurrent(cell: sequential [ linear(3, 2), tanh ], steps: 4)")));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 3);
  ASSERT_EQ(f.parameters.size(), 2u);
  const Numbers x = Input(f.graph, "x");
  const Numbers w = Input(f.graph, "linear1_weight");
  const Numbers b = Input(f.graph, "linear1_bias");
  Numbers expected;
  for (size_t row = 0; row < 3; ++row) {
    Numbers state = {0, 0};
    for (size_t t = 0; t < 4; ++t) {
      state = Linear({x[4 * row + t], state[0], state[1]}, w, b);
      for (double& s : state) s = std::tanh(s);
    }
    expected.insert(expected.end(), state.begin(), state.end());
  }
  ExpectNear(Evaluate(f.graph, f.output), expected);
}

TEST(L2Infer, UntilKeepsARowFromTheStepAtWhichItHolds) {
  const Module module =
      Read(Program("tensor(f32, [2])", "tensor(f32, [2])", "tensor(f32, [2])",
                   Lines("recurrent(cell: linear(2, 2), until(norm(state) > 1.5 || step >= 5))")));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 3);
  const Numbers x = Input(f.graph, "x");
  const Numbers w = Input(f.graph, "linear1_weight");
  const Numbers b = Input(f.graph, "linear1_bias");
  Numbers expected;
  for (size_t row = 0; row < 3; ++row) {
    Numbers state = {x[2 * row], x[2 * row + 1]};
    for (int t = 0; t < 5 && std::hypot(state[0], state[1]) <= 1.5; ++t)
      state = Linear(state, w, b);
    expected.insert(expected.end(), state.begin(), state.end());
  }
  ExpectNear(Evaluate(f.graph, f.output), expected);
}

TEST(L2Infer, AMixtureIsTheSumOfItsExpertsByTheGate) {
  const Module module = Read(Program("tensor(f32, [2])", "tensor(f32, [2])", "tensor(f32, [2])",
                                     Lines("mixture(experts: [linear(2, 2), linear(2, 2)], gate: "
                                           "sequential [ linear(2, 2), softmax ])")));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 3);
  const Numbers x = Input(f.graph, "x");
  auto layer = [&](const std::string& name, const Numbers& row) {
    return Linear(row, Input(f.graph, name + "_weight"), Input(f.graph, name + "_bias"));
  };
  Numbers expected;
  for (size_t i = 0; i < 3; ++i) {
    const Numbers row = {x[2 * i], x[2 * i + 1]};
    const Numbers gate = layer("linear3", row);
    const double share = 1 / (1 + std::exp(gate[1] - gate[0]));
    for (size_t o = 0; o < 2; ++o) {
      expected.push_back(share * layer("linear1", row)[o] + (1 - share) * layer("linear2", row)[o]);
    }
  }
  ExpectNear(Evaluate(f.graph, f.output), expected);
}

// Whatever the network inside, and whatever its weights.
TEST(L2Infer, ASymmetricNetworkIsTheSameUnderItsGroup) {
  struct Case {
    tensor::Shape shape;
    std::string net, group;
    int64_t axis;
    bool mirrors, turns;
  };
  const std::string conv = "conv(1, 2, kernel: 3, padding: 1), gelu, linear(32, 3)";
  for (const Case& c :
       {Case{{4, 4}, conv, "c4", 1, false, true}, Case{{4, 4}, conv, "d4", 1, true, true},
        Case{{4, 4}, conv, "reflection", 1, true, false},
        Case{{3, 3, 2}, "conv(2, 2, kernel: 2), tanh, linear(8, 3)", "d4", 1, true, true},
        Case{{5, 2}, "linear(10, 4), gelu, linear(4, 3)", "reflection", 0, true, false}}) {
    std::string x = "tensor(f32, [";
    for (size_t d = 0; d < c.shape.size(); ++d) {
      x += (d == 0 ? "" : ", ") + std::to_string(c.shape[d]);
    }
    const std::string axis = c.group == "reflection" ? ", axis: " + std::to_string(c.axis) : "";
    auto forward = [&](const std::string& infer) {
      const Module module =
          Read(Program(x + "])", "tensor(f32, [3])", "tensor(f32, [3])", Lines(infer)));
      return ExpandForward(module, module.methods[0], 3);
    };
    const ForwardGraph f =
        forward("symmetric(net: sequential [" + c.net + "], group: " + c.group + axis + ")");
    const ForwardGraph plain = forward("sequential [" + c.net + "]");
    // [batch, …] with the sample at every place taken from where the action moves it from.
    auto acted = [&](Array array, bool mirrored, int turns) {
      const Numbers from = array.floats;
      const int64_t h = c.shape[0];
      const int64_t w = c.shape[1];
      const int64_t channels = c.shape.size() == 3 ? c.shape[2] : 1;
      for (int64_t b = 0; b < 3; ++b) {
        for (int64_t i = 0; i < h; ++i) {
          for (int64_t j = 0; j < w; ++j) {
            int64_t y = i;
            int64_t z = j;
            for (int t = 0; t < turns; ++t) std::tie(y, z) = std::pair(z, h - 1 - y);
            if (mirrored && c.axis == 0) y = h - 1 - y;
            if (mirrored && c.axis == 1) z = w - 1 - z;
            for (int64_t k = 0; k < channels; ++k) {
              array.floats[static_cast<size_t>(((b * h + i) * w + j) * channels + k)] =
                  from[static_cast<size_t>(((b * h + y) * w + z) * channels + k)];
            }
          }
        }
      }
      return array;
    };
    auto evaluate = [&](const ForwardGraph& graph, bool mirrored, int turns) {
      std::vector<Array> inputs = Inputs(graph.graph, 0);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (graph.graph.node(graph.graph.inputs()[i]).name != "x") continue;
        inputs[i] = acted(std::move(inputs[i]), mirrored, turns);
      }
      return tensor::EvaluateNodes(graph.graph, inputs, std::vector{graph.output},
                                   tensor::Precision::kOracle)[0]
          .floats;
    };
    const Numbers still = evaluate(f, false, 0);
    double moved = 0;
    int actions = 0;
    Numbers mean(still.size(), 0.0);
    for (int mirrored = 0; mirrored <= (c.mirrors ? 1 : 0); ++mirrored) {
      for (int turns = 0; turns <= (c.turns ? 3 : 0); ++turns) {
        ExpectNear(evaluate(f, mirrored == 1, turns), still, 1e-12);
        const Numbers other = evaluate(plain, mirrored == 1, turns);
        for (size_t i = 0; i < mean.size(); ++i) {
          mean[i] += other[i];
          moved = std::max(moved, std::abs(other[i] - still[i]));
        }
        ++actions;
      }
    }
    // It is the mean of the plain network, which by itself is not the same.
    for (double& v : mean) v /= actions;
    ExpectNear(still, mean, 1e-12);
    EXPECT_GT(moved, 0.01) << c.group;
  }
}

TEST(L2Infer, WhatIsNotTheSameUnderTheGroupIsRefused) {
  auto errors = [](const std::string& property, const std::string& infer,
                   const std::string& x = "tensor(f32, [4, 4])") {
    std::string text = Program(x, "tensor(f32, [3])", "tensor(f32, [3])", Lines(infer));
    text.replace(text.find("properties: []"), 14, "properties: [" + property + "]");
    return Errors(text);
  };
  const std::string net = "(net: linear(16, 3), group: ";
  EXPECT_EQ(errors("equivariant(c4)", "symmetric" + net + "c4)"), "");
  EXPECT_EQ(errors("equivariant(c4)", "symmetric" + net + "d4)"), "");
  EXPECT_EQ(errors("equivariant(reflection)", "symmetric" + net + "d4)"), "");
  EXPECT_EQ(errors("equivariant(reflection)", "symmetric" + net + "reflection, axis: 1)"), "");
  EXPECT_EQ(errors("equivariant(c4)", "sequential [ relu, symmetric" + net + "c4), linear(3, 3) ]"),
            "");
  EXPECT_NE(errors("equivariant(c4)", "linear(16, 3)").find("'symmetric(net: …, group: c4)'"),
            std::string::npos);
  EXPECT_NE(errors("equivariant(d4)", "symmetric" + net + "c4)").find("equivariant(d4)"),
            std::string::npos);
  EXPECT_NE(errors("equivariant(reflection)", "symmetric" + net + "reflection)").find("axis: 1"),
            std::string::npos);
  EXPECT_NE(errors("equivariant(permutation)", "symmetric" + net + "d4)").find("permutation"),
            std::string::npos);
  EXPECT_NE(errors("", "symmetric(net: linear(8, 3), group: c4)", "tensor(f32, [4, 2])")
                .find("square image"),
            std::string::npos);
  EXPECT_NE(
      errors("", "symmetric(net: linear(4, 3), group: reflection, axis: 2)", "tensor(f32, [4])")
          .find("no axis 2"),
      std::string::npos);
  std::string nested = "linear(16, 3)";
  for (int i = 0; i < 12; ++i) nested = "symmetric(net: " + nested + ", group: d4)";
  EXPECT_NE(errors("", nested).find("at most 4096"), std::string::npos);
}

TEST(L2Infer, AGraphTakesTheMeanOverNeighbours) {
  auto output = [](const std::string& edges) {
    const Module module =
        Read(Program("tensor(f32, [4, 2])", "tensor(f32, [4, 1])", "tensor(f32, [4, 1])",
                     Lines("graph(nodes: linear(2, 1), edges: " + edges + ")")));
    const ForwardGraph f = ExpandForward(module, module.methods[0], 3);
    return Evaluate(f.graph, f.output);
  };
  EXPECT_EQ(output("ring"), output("[[0, 1], [1, 2], [2, 3], [3, 0]]"));
  EXPECT_EQ(output("chain"), output("[[0, 1], [1, 2], [3, 2]]"));
  EXPECT_EQ(output("full"), output("[[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]"));
  EXPECT_NE(output("ring"), output("chain"));
}

TEST(L2Infer, DiffusionDrawsAnotherNoiseInEveryStepAndTheSameForASeed) {
  const Module module =
      Read(Program("tensor(f32, [3])", "tensor(f32, [3])", "tensor(f32, [3])",
                   Lines("diffusion_chain(denoiser: linear(4, 3), steps: 10, noise: linear)")));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 3, {true, 5});
  EXPECT_EQ(Evaluate(f.graph, f.loss, 1), Evaluate(f.graph, f.loss, 1));
  EXPECT_NE(Evaluate(f.graph, f.loss, 1), Evaluate(f.graph, f.loss, 2));
  const ForwardGraph other = ExpandForward(module, module.methods[0], 3, {true, 6});
  EXPECT_NE(Evaluate(f.graph, f.loss, 1), Evaluate(other.graph, other.loss, 1));
  const ForwardGraph evaluation = ExpandForward(module, module.methods[0], 3);
  EXPECT_FALSE(evaluation.step.has_value());
}

TEST(L2Infer, DropoutKeepsTheMeanAndIsTheSameWhenComputedAgain) {
  const Module module = Read(Program("tensor(f32, [2000])", "tensor(f32, [1])", "tensor(f32, [1])",
                                     Lines("sequential [ dropout(0.25), linear(2000, 1) ]")));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 3, {true, 0});
  const NodeId dropped = *f.graph.Find("dropout1");
  const Numbers y = Evaluate(f.graph, dropped, 3);
  EXPECT_EQ(y, Evaluate(f.graph, dropped, 3));
  EXPECT_NE(y, Evaluate(f.graph, dropped, 4));
  const Numbers x = Input(f.graph, "x");
  int zeros = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    zeros += y[i] == 0 ? 1 : 0;
    if (y[i] == 0) continue;
    EXPECT_NEAR(y[i], x[i] / 0.75, 1e-6);
  }
  EXPECT_NEAR(zeros, 1500, 120);
}

// ---- Backward -----------------------------------------------------------------------------------

// The directions of all parameters, joined, averaged over `steps` steps.
Numbers Directions(const std::string& text, int steps = 1) {
  const Module module = Read(text);
  if (module.methods.empty()) return {};
  const Methods& methods = module.methods[0];
  const ForwardGraph f = ExpandForward(module, methods, 3, {true, 11});
  BackwardGraph backward(f, 0, 11, 100);
  BackwardCall call{&methods.backward, &methods, 0, f.turns[0].parameters};
  std::vector<NodeId> nodes = FindBackward(methods.backward.name)->direct(backward, call);
  Numbers sum;
  for (int step = 0; step < steps; ++step) {
    const auto found = tensor::EvaluateNodes(backward.graph(), Inputs(backward.graph(), step),
                                             nodes, tensor::Precision::kOracle);
    size_t at = 0;
    for (const Array& array : found) {
      for (double v : array.floats) {
        if (step == 0) sum.push_back(0);
        sum[at++] += v / steps;
      }
    }
  }
  return sum;
}

double Cosine(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                   std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
}

// The length of `a` along `b`, in lengths of `b`: 1 on average where `a` estimates `b`.
double Share(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
}

std::string Regression(
    const std::string& backward,
    const std::string& infer = "sequential [ linear(4, 5), tanh, linear(5, 2) ]") {
  return Program("tensor(f32, [4])", "tensor(f32, [2])", "tensor(f32, [2])",
                 Lines(infer, backward));
}
std::string Classes(const std::string& backward, const std::string& more = "") {
  return Program("tensor(f32, [4])", "scalar(u8)", "dist(3)",
                 Lines("sequential [ linear(4, 5), tanh, linear(5, 3), softmax ]", backward, more));
}

TEST(L2Backward, ForwardModeAndCheckpointsGiveTheGradientOfReverseMode) {
  const Numbers reverse = Directions(Regression("autodiff(mode: reverse)"));
  ExpectNear(Directions(Regression("autodiff(mode: forward)")), reverse);
  ExpectNear(Directions(Regression("autodiff(mode: reverse, checkpoint: [linear1])")), reverse);
  ExpectNear(Directions(Regression("autodiff(mode: reverse, checkpoint: [tanh1])")), reverse);
}

TEST(L2Backward, CheckpointsComputeValuesAgain) {
  auto size = [](const std::string& text) {
    const Module module = Read(text);
    const Methods& methods = module.methods[0];
    const ForwardGraph f = ExpandForward(module, methods, 3, {true, 11});
    BackwardGraph backward(f, 0, 11, 100);
    FindBackward("autodiff")->direct(backward, {&methods.backward, &methods, 0, {0, 1, 2, 3}});
    return std::pair(backward.graph().Find("tanh1_again").has_value(), backward.graph().size());
  };
  EXPECT_FALSE(size(Regression("autodiff(mode: reverse)")).first);
  EXPECT_TRUE(size(Regression("autodiff(mode: reverse, checkpoint: [linear1])")).first);
}

TEST(L2Backward, DfaIsExactInTheLastStageAndFollowsTheGradientBefore) {
  const Numbers exact = Directions(Regression("autodiff(mode: reverse)"));
  const Numbers fed = Directions(Regression("dfa(feedback_dim: 3)"));
  ASSERT_EQ(exact.size(), fed.size());
  // Weight and bias of the first stage come first.
  ExpectNear(Numbers(fed.begin() + 25, fed.end()), Numbers(exact.begin() + 25, exact.end()));
  EXPECT_NE(Numbers(fed.begin(), fed.begin() + 25), Numbers(exact.begin(), exact.begin() + 25));
}

TEST(L2Backward, DirectionsFromLossesFollowTheGradient) {
  const Numbers exact = Directions(Regression("autodiff(mode: reverse)"));
  const Numbers differences = Directions(Regression("zeroth_order(samples: 8, sigma: 0.01)"), 12);
  EXPECT_GT(Cosine(differences, exact), 0.8);
  // Along the gradient a difference is |g|²χ² of one degree of freedom: its mean over 96 deviates
  // by √(2/96) = 0.14.
  EXPECT_NEAR(Share(differences, exact), 1, 0.3);
  for (const char* selection : {"all", "rank", "top"}) {
    const std::string form =
        std::string("evolution(pop: 16, sigma: 0.01, selection: ") + selection + ")";
    EXPECT_GT(Cosine(Directions(Regression(form), 12), exact), 0.6) << selection;
  }
}

// E over samples of (error of the sample)·∇log p is the gradient of the expected error.
TEST(L2Backward, ReinforceFollowsTheGradientOfTheExpectedLoss) {
  const Numbers exact = Directions(Classes("autodiff(mode: reverse)", "loss: error\n"));
  for (const char* baseline : {"none", "mean"}) {
    const Numbers found = Directions(
        Classes(std::string("reinforce(baseline: ") + baseline + ")", "loss: error\n"), 400);
    EXPECT_GT(Cosine(found, exact), 0.8) << baseline;
    EXPECT_NEAR(Share(found, exact), std::string(baseline) == "none" ? 1 : 2.0 / 3, 0.25)
        << baseline;
  }
}

// What is no sample's keeps its own gradient, to the last bit of the noise that the samples make.
TEST(L2Backward, ReinforceKeepsTheGradientsOfNormsAndCustomLosses) {
  auto with = [](const std::string& backward, const std::string& terms) {
    std::string text = Classes(backward, "loss: error\n");
    text.insert(text.find("    combine:"), terms);
    return text;
  };
  auto difference = [&](const std::string& backward, const std::string& terms) {
    const Numbers all = Directions(with(backward, terms));
    const Numbers fit = Directions(with(backward, ""));
    Numbers own;
    for (size_t i = 0; i < all.size(); ++i) own.push_back(all[i] - fit[i]);
    return own;
  };
  const std::string norm = "    small: norm(m.params, p=2), weight: 0.5\n";
  const std::string custom =
      "    flat: custom(flatness, reads: [m.out], value: mean(m.out * m.out)), weight: 2.0\n";
  for (const std::string& terms : {norm, custom, norm + custom}) {
    const Numbers own = difference("reinforce(baseline: mean)", terms);
    ExpectNear(own, difference("autodiff(mode: reverse)", terms));
    EXPECT_GT(std::inner_product(own.begin(), own.end(), own.begin(), 0.0), 1e-3) << terms;
  }
}

// A turn that compares nothing has nothing to sample: its own gradient is left.
TEST(L2Backward, ReinforceTakesATurnWithoutComparisons) {
  std::string text = Classes("reinforce(baseline: mean)", "loss: error\n");
  text.insert(text.find("goal:"),
              "loss size {\n    small: norm(m.params, p=2), weight: 1.0\n"
              "    combine: weighted_sum\n}\n");
  text.replace(text.find("goal: minimize(l)"), 17,
               "goal: alternate([minimize(l), minimize(size)])");
  const Module module = Read(text);
  ASSERT_EQ(module.methods.size(), 1u);
  const Methods& methods = module.methods[0];
  const ForwardGraph f = ExpandForward(module, methods, 3, {true, 11});
  ASSERT_EQ(f.turns.size(), 2u);
  EXPECT_FALSE(f.turns[1].row_loss.has_value());
  BackwardGraph backward(f, 1, 11, 100);
  const auto nodes =
      FindBackward("reinforce")->direct(backward, {&methods.backward, &methods, 0, {0}});
  // ∇‖θ‖₂ = θ/‖θ‖₂, of one parameter θ among all.
  double squares = 0;
  for (const Parameter& p : f.parameters) {
    for (double v : Input(f.graph, p.name)) squares += v * v;
  }
  Numbers expected = Input(f.graph, f.parameters[0].name);
  for (double& v : expected) v /= std::sqrt(squares);
  ExpectNear(Evaluate(backward.graph(), nodes[0]), expected);
}

// Two models that learn in one turn, each by a blend: each direction is its own.
TEST(L2Backward, TwoModelsLearnByHybridsInOneTurn) {
  auto program = [](const std::string& backward) {
    auto methods = [&](const std::string& name, const std::string& layer) {
      return "methods for " + name + " {\n" + Lines(layer, backward) + "}\n";
    };
    return "data d {\n    x : tensor(f32, [4])\n    y : tensor(f32, [2])\n}\n"
           "model a {\n    in:  d.x\n    out: tensor(f32, [3])\n    properties: []\n}\n"
           "model b {\n    in:  a.out\n    out: tensor(f32, [2])\n    properties: []\n}\n"
           "loss l {\n    fit: divergence(b.out, d.y), weight: 1.0\n    combine: weighted_sum\n}\n"
           "goal: minimize(l)\n" +
           methods("a", "linear(4, 3)") + methods("b", "linear(3, 2)");
  };
  auto directions = [&](const std::string& backward) {
    const Module module = Read(program(backward));
    const ForwardGraph f = ExpandForward(module, module.methods[0], 3, {true, 11});
    BackwardGraph graph(f, 0, 11, 100);
    std::vector<NodeId> all;
    const BackwardGraph::Pin pin(graph, all);
    for (size_t model : {0, 1}) {
      const Methods& methods = module.methods[model];
      const size_t first = 2 * model;
      for (NodeId node :
           FindBackward(methods.backward.name)
               ->direct(graph, {&methods.backward, &methods, model, {first, first + 1}})) {
        all.push_back(node);
      }
    }
    Numbers values;
    for (NodeId node : all) {
      for (double v : Evaluate(graph.graph(), node)) values.push_back(v);
    }
    return values;
  };
  ExpectNear(directions("hybrid(primary: autodiff(mode: reverse), aux: autodiff(mode: forward))"),
             directions("autodiff(mode: reverse)"));
}

TEST(L2Backward, AHybridIsTheBlend) {
  const Numbers exact = Directions(Regression("autodiff(mode: reverse)"));
  const Numbers half = Directions(
      Regression("hybrid(primary: autodiff(mode: reverse), aux: autodiff(mode: forward))"));
  ExpectNear(half, exact);
  // At step 0 of a linear blend, the auxiliary method alone.
  ExpectNear(Directions(Regression("hybrid(primary: zeroth_order(samples: 1, sigma: 1), aux: "
                                   "autodiff(mode: reverse), blend: linear)")),
             exact);
}

TEST(L2Backward, StraightThroughGivesAFlatLayerASlope) {
  const std::string infer = "sequential [ linear(4, 5), sign, linear(5, 2) ]";
  const Numbers through = Directions(Regression("straight_through(estimator: identity)", infer));
  double first_stage = 0;
  for (size_t i = 0; i < 25; ++i) first_stage += std::abs(through[i]);
  EXPECT_GT(first_stage, 0.1);
  // The forward pass is that of sign.
  const Module module = Read(Regression("straight_through(estimator: clipped)", infer));
  const ForwardGraph training = ExpandForward(module, module.methods[0], 3, {true, 0});
  const ForwardGraph evaluation = ExpandForward(module, module.methods[0], 3);
  EXPECT_EQ(Evaluate(training.graph, training.loss), Evaluate(evaluation.graph, evaluation.loss));
}

TEST(L2Backward, WhatAMethodCannotHandleIsRefusedWithAWayOut) {
  auto expect = [](const std::string& text, const std::string& part) {
    const std::string found = Errors(text);
    EXPECT_NE(found.find(part), std::string::npos) << found;
    EXPECT_NE(found.find("fix:"), std::string::npos) << found;
  };
  const std::string wide = "sequential [ linear(4, 50), tanh, linear(50, 2) ]";
  expect(Regression("autodiff(mode: forward)", wide), "forward mode needs one pass");
  expect(Regression("autodiff(mode: reverse, checkpoint: [linear9])"), "no layer 'linear9'");
  expect(Regression("autodiff(mode: reverse)", "sequential [ linear(4, 5), sign, linear(5, 2) ]"),
         "flat");
  expect(Regression("straight_through(estimator: clipped)"), "no flat layer");
  expect(Regression("dfa(feedback_dim: 2)", "linear(4, 2)"), "no hidden stage");
  expect(
      Regression("dfa(feedback_dim: 2)", "sequential [ residual [ linear(4, 4) ], linear(4, 2) ]"),
      "no chain");
  expect(Regression("reinforce(baseline: mean)"), "draws a class");
  expect(Classes("reinforce(baseline: mean)"), "infinite");
  expect(Regression("evolution(pop: 7, sigma: 0.1)"), "odd");
}

// ---- Sampling -----------------------------------------------------------------------------------

TEST(L2Sample, ACurriculumCountsTheRowsOfItsStage) {
  const std::string methods =
      Lines("linear(2, 2)", "autodiff(mode: reverse)", "",
            "curriculum([{ filter: max(d.x) < 0.2, duration: 2 }, { filter: "
            "max(d.x) >= 0.2 && max(d.x) < 9, duration: 1 }], batch: 6)");
  const Module module =
      Read(Program("tensor(f32, [2])", "tensor(f32, [2])", "tensor(f32, [2])", methods));
  const ForwardGraph f = ExpandForward(module, module.methods[0], 6, {true, 0});
  const Numbers x = Input(f.graph, "x");
  Numbers easy, hard;
  for (size_t row = 0; row < 6; ++row) {
    const bool is_easy = std::max(x[2 * row], x[2 * row + 1]) < 0.2;
    easy.push_back(is_easy ? 1 : 0);
    hard.push_back(is_easy ? 0 : 1);
  }
  EXPECT_EQ(Evaluate(f.graph, f.row_weight, 0), easy);
  EXPECT_EQ(Evaluate(f.graph, f.row_weight, 1), easy);
  EXPECT_EQ(Evaluate(f.graph, f.row_weight, 2), hard);
  EXPECT_EQ(Evaluate(f.graph, f.row_weight, 3), Numbers(6, 1));
}

TEST(L2Sample, WhatCannotBeDrawnIsRefusedWithAWayOut) {
  auto expect = [](const std::string& sample, const std::string& part) {
    const std::string found =
        Errors(Program("tensor(f32, [2])", "tensor(f32, [2])", "tensor(f32, [2])",
                       Lines("linear(2, 2)", "autodiff(mode: reverse)", "", sample)));
    EXPECT_NE(found.find(part), std::string::npos) << found;
    EXPECT_NE(found.find("fix:"), std::string::npos) << found;
  };
  expect("stream_window(window: 7)", "no field that is read has 7 elements");
  expect("replay(buffer: 8, batch: 16)", "less than one batch");
  expect("distributed_shard(shards: 2, method: replay(buffer: 64))", "one order");
  expect(
      "curriculum([{ filter: max(d.x) < 1, duration: 2 }, { filter: max(d.x) < 2, duration: 2 }])",
      "overlaps");
  expect("curriculum([{ filter: d.x < 1, duration: 2 }])", "each element");
}

TEST(L2Infer, AnUnprovenUntilAndOtherFaultsAreRefused) {
  auto expect = [](const std::string& infer, const std::string& part) {
    const std::string found =
        Errors(Program("tensor(f32, [2])", "tensor(f32, [2])", "tensor(f32, [2])", Lines(infer)));
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect("recurrent(cell: linear(2, 2), until(norm(change) < 0.1))",
         "nothing proves that this ends");
  expect("recurrent(cell: linear(2, 2), until(norm(change) < 0.1 && step >= 3))", "nothing proves");
  expect("recurrent(cell: linear(2, 2), until(step >= 100000))", "100000 steps");
  expect("recurrent(cell: linear(2, 2))", "one of 'steps: n' and 'until(predicate)'");
  expect("recurrent(cell: linear(2, 3), steps: 2)", "cannot take");
  expect("mixture(experts: [linear(2, 2), linear(2, 2)], gate: linear(2, 2))",
         "gives no distribution");
  expect("mixture(experts: [linear(2, 2)], gate: softmax)", "at least two");
  expect("graph(nodes: linear(2, 2), edges: [[0, 9]])", "[nodes, features]");
  expect("sequential [ linear(2, 2), shared(norm1) ]", "no layer 'norm1'");
}

}  // namespace
}  // namespace l3c::l2
