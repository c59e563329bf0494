#include "tests/layers/tensor/rounding_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace l3c::tensor {
namespace {

// The distance of f32 arithmetic, one rounding an operation, from exact (f64), and its bound.
struct Seen {
  double distance = 0;
  double bound = 0;
  double norm = 0;
};

Seen Measure(const Graph& g, const std::vector<Array>& inputs) {
  std::vector<Bounded> bounded;
  for (const Array& input : inputs) bounded.push_back(Exactly(input));
  const NodeId node = g.outputs()[0].node;
  const Bounded result = EvaluateWithBounds(g, bounded, std::vector<NodeId>{node})[0];
  const Array exact = Evaluate(g, inputs, Precision::kOracle)[0];
  std::vector<double> gap;
  for (size_t i = 0; i < exact.floats.size(); ++i) {
    gap.push_back(exact.floats[i] - result.value.floats[i]);
  }
  return {Norm(gap), Norm(result.error), Norm(exact.floats)};
}

TEST(RoundingBound, IsAsLargeAsTheTermsThatCancel) {
  Graph g;
  const NodeId a = g.AddInput("a", DType::kF32, {});
  const NodeId b = g.AddInput("b", DType::kF32, {});
  const NodeId sum = g.Binary(Op::kAdd, a, b);
  g.AddOutput("o", g.Binary(Op::kAdd, sum, g.Unary(Op::kNeg, a)));
  const Seen seen = Measure(g, {Array::Floats(DType::kF32, {}, {1e6}),
                                Array::Floats(DType::kF32, {}, {static_cast<float>(0.3)})});
  EXPECT_GT(seen.distance, 1e-2 * seen.norm);
  EXPECT_LE(seen.distance, seen.bound);
  EXPECT_LE(seen.bound, 0.5);
}

TEST(RoundingBound, IsWithinTheClassWhereNothingCancels) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {8, 16});
  const NodeId y = g.AddInput("y", DType::kF32, {16, 4});
  const NodeId h = g.Unary(Op::kExp2, g.Unary(Op::kSin, g.Matmul(x, y)));
  g.AddOutput("o", g.ReduceSum(g.Binary(Op::kMul, h, h), {1}));
  std::mt19937 random(1);
  std::uniform_real_distribution<double> real(0, 0.25);
  std::vector<Array> inputs = {Array::Zeros(DType::kF32, {8, 16}),
                               Array::Zeros(DType::kF32, {16, 4})};
  for (Array& input : inputs) {
    for (double& v : input.floats) v = static_cast<float>(real(random));
  }
  const Seen seen = Measure(g, inputs);
  EXPECT_LE(seen.distance, seen.bound);
  EXPECT_LE(seen.bound, 1e-5 * seen.norm);
}

TEST(RoundingBound, AComparisonThatMayTurnMakesBothBranchesPossible) {
  Graph g;
  const NodeId a = g.AddInput("a", DType::kF32, {2});
  const NodeId third = g.Binary(Op::kMul, a, g.Full(static_cast<float>(1.0 / 3), {2}));
  const NodeId back = g.Binary(Op::kMul, third, g.Full(3, {2}));
  const NodeId less = g.Binary(Op::kCmpLt, back, g.Full(1, {2}));
  g.AddOutput("o", g.Add(Op::kWhere, {less, g.Full(5, {2}), g.Full(7, {2})}));
  const std::vector<Bounded> in = {Exactly(Array::Floats(DType::kF32, {2}, {1, 2}))};
  const auto out = EvaluateWithBounds(g, in, std::vector<NodeId>{g.outputs()[0].node});
  EXPECT_EQ(out[0].error, (std::vector<double>{2, 0}));
}

TEST(RoundingBound, FollowsWhatIsMoved) {
  Graph g;
  const NodeId a = g.AddInput("a", DType::kF32, {2});
  Attributes pad;
  pad.ints = {1, 0};
  const NodeId twice = g.Binary(Op::kAdd, a, a);
  const NodeId padded = g.Add(Op::kPad, {twice}, pad);
  const std::vector<Bounded> in = {{Array::Floats(DType::kF32, {2}, {1, 4}), {0.5, 0.25}}};
  const auto out = EvaluateWithBounds(g, in, std::vector<NodeId>{padded});
  ASSERT_EQ(out[0].error.size(), 3u);
  EXPECT_EQ(out[0].error[0], 0);
  EXPECT_NEAR(out[0].error[1], 1, 1e-6);
  EXPECT_NEAR(out[0].error[2], 0.5, 1e-6);
}

}  // namespace
}  // namespace l3c::tensor
