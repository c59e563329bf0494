#include "layers/tensor/interpreter.h"

#include "tests/layers/tensor/testing.h"

namespace l3c::tensor {
namespace {

constexpr auto kOwn = Precision::kOwnDType;

// Runs one op on the given operands.
Array RunOp(std::string_view op, std::vector<Array> operands, Attributes attr = {},
            Precision precision = kOwn) {
  Graph g;
  std::vector<NodeId> ids;
  for (const Array& operand : operands) {
    ids.push_back(g.AddInput("x" + std::to_string(ids.size()), operand.dtype, operand.shape));
  }
  g.AddOutput("y", g.Add(FindOp(op).value(), ids, std::move(attr)));
  return Evaluate(g, operands, precision)[0];
}

Array RunOp(std::string_view op, std::vector<Array> operands, std::vector<int64_t> ints) {
  Attributes attr;
  attr.ints = std::move(ints);
  return RunOp(op, std::move(operands), attr);
}

Array RunTyped(std::string_view op, const Array& operand, DType dtype) {
  Attributes attr;
  attr.dtype = dtype;
  return RunOp(op, {operand}, attr);
}

Array V(std::vector<double> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  return F32({count}, std::move(values));
}
Array I(DType dtype, std::vector<int64_t> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  return Array::Ints(dtype, {count}, std::move(values));
}
using Ints = std::vector<int64_t>;

TEST(Elementwise, FloatsFollowIeee) {
  ExpectSame(RunOp("add", {V({1, kInf, -0.0, -0.0}), V({2, -kInf, -0.0, 0.0})}).floats,
             {3, kNan, -0.0, 0.0});
  ExpectSame(RunOp("mul", {V({0.0, -0.0, kInf}), V({kInf, 2, -1})}).floats, {kNan, -0.0, -kInf});
  ExpectSame(RunOp("neg", {V({0.0, -kInf})}).floats, {-0.0, kInf});
  ExpectSame(RunOp("recip", {V({0.0, -0.0, -kInf, 4})}).floats, {kInf, -kInf, -0.0, 0.25});
  ExpectSame(RunOp("exp2", {V({-kInf, kInf, 128, -150, 0.5})}).floats,
             {0, kInf, kInf, 0, std::sqrt(2.0f)});
  ExpectSame(RunOp("log2", {V({0.0, -1, kInf, 8})}).floats, {-kInf, kNan, kInf, 3});
  ExpectSame(RunOp("sqrt", {V({-0.0, -1, kInf, 9})}).floats, {-0.0, kNan, kInf, 3});
  ExpectSame(RunOp("sin", {V({-0.0, kInf})}).floats, {-0.0, kNan});
}

TEST(Elementwise, MaxPropagatesNanAndOrdersZeros) {
  ExpectSame(RunOp("max", {V({kNan, 1, -0.0, 0.0, -kInf}), V({1, kNan, 0.0, -0.0, 3})}).floats,
             {kNan, kNan, 0.0, 0.0, 3});
  ExpectSame(RunOp("min", {V({kNan, 1, -0.0, 0.0, -kInf}), V({1, kNan, 0.0, -0.0, 3})}).floats,
             {kNan, kNan, -0.0, -0.0, -kInf});
}

TEST(Elementwise, ModHasTheSignOfTheDividend) {
  ExpectSame(RunOp("mod", {V({5.5, -5.5, 5, 1, kInf}), V({2, 2, -3, kInf, 2})}).floats,
             {1.5, -1.5, 2, 1, kNan});
  EXPECT_EQ(
      RunOp("mod", {I(DType::kI32, {7, -7, 7, INT32_MIN}), I(DType::kI32, {3, 3, 0, -1})}).ints,
      (Ints{1, -1, 0, 0}));
  EXPECT_EQ(RunOp("mod", {I(DType::kU64, {-1}), I(DType::kU64, {10})}).ints, (Ints{5}));
}

TEST(Elementwise, ComparisonsAreFalseOnNanButForNe) {
  EXPECT_EQ(RunOp("cmplt", {V({1, kNan, -0.0}), V({2, 1, 0.0})}).ints, (Ints{1, 0, 0}));
  EXPECT_EQ(RunOp("cmpne", {V({1, kNan, -0.0}), V({2, kNan, 0.0})}).ints, (Ints{1, 1, 0}));
  EXPECT_EQ(RunOp("cmpeq", {V({1, kNan, -0.0}), V({2, kNan, 0.0})}).ints, (Ints{0, 0, 1}));
  EXPECT_EQ(RunOp("cmple", {V({1, kNan, 2}), V({2, kNan, 2})}).ints, (Ints{1, 0, 1}));
  EXPECT_EQ(RunOp("cmpge", {V({1, kNan, 2}), V({2, 0, 2})}).ints, (Ints{0, 0, 1}));
  EXPECT_EQ(RunOp("cmpgt", {V({1, kNan, 3}), V({2, 0, 2})}).ints, (Ints{0, 0, 1}));
  EXPECT_EQ(RunOp("cmplt", {I(DType::kU64, {-1}), I(DType::kU64, {1})}).ints, (Ints{0}));
  EXPECT_EQ(RunOp("cmplt", {I(DType::kI64, {-1}), I(DType::kI64, {1})}).ints, (Ints{1}));
}

TEST(Elementwise, IntegersWrap) {
  EXPECT_EQ(RunOp("add", {I(DType::kU8, {250}), I(DType::kU8, {10})}).ints, (Ints{4}));
  EXPECT_EQ(RunOp("add", {I(DType::kI32, {INT32_MAX}), I(DType::kI32, {1})}).ints,
            (Ints{INT32_MIN}));
  EXPECT_EQ(RunOp("mul", {I(DType::kI64, {INT64_MAX}), I(DType::kI64, {2})}).ints, (Ints{-2}));
  EXPECT_EQ(RunOp("neg", {I(DType::kU32, {1})}).ints, (Ints{4294967295}));
  EXPECT_EQ(RunOp("neg", {I(DType::kI32, {INT32_MIN})}).ints, (Ints{INT32_MIN}));
  EXPECT_EQ(RunOp("sub", {I(DType::kU8, {3}), I(DType::kU8, {5})}).ints, (Ints{254}));
  EXPECT_EQ(RunOp("max", {I(DType::kU64, {-1}), I(DType::kU64, {1})}).ints, (Ints{-1}));
}

TEST(Elementwise, BoolIsALattice) {
  const Array a = I(DType::kBool, {0, 0, 1, 1});
  const Array b = I(DType::kBool, {0, 1, 0, 1});
  EXPECT_EQ(RunOp("add", {a, b}).ints, (Ints{0, 1, 1, 1}));
  EXPECT_EQ(RunOp("mul", {a, b}).ints, (Ints{0, 0, 0, 1}));
  EXPECT_EQ(RunOp("max", {a, b}).ints, (Ints{0, 1, 1, 1}));
  EXPECT_EQ(RunOp("not", {a}).ints, (Ints{1, 1, 0, 0}));
  ExpectSame(RunOp("where", {a, V({1, 2, 3, 4}), V({kNan, 6, 7, 8})}).floats, {kNan, 6, 3, 4});
}

TEST(Cast, TruncatesSaturatesAndRounds) {
  const Array a = V({1.9, -1.9, kNan, kInf, -kInf, 300, 3e9});
  EXPECT_EQ(RunTyped("cast", a, DType::kI32).ints,
            (Ints{1, -1, 0, INT32_MAX, INT32_MIN, 300, INT32_MAX}));
  EXPECT_EQ(RunTyped("cast", a, DType::kU8).ints, (Ints{1, 0, 0, 255, 0, 255, 255}));
  EXPECT_EQ(RunTyped("cast", a, DType::kI64).ints,
            (Ints{1, -1, 0, INT64_MAX, INT64_MIN, 300, 3000000000}));
  EXPECT_EQ(RunTyped("cast", a, DType::kU64).ints, (Ints{1, 0, 0, -1, 0, 300, 3000000000}));
  EXPECT_EQ(RunTyped("cast", a, DType::kBool).ints, (Ints{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(RunTyped("cast", V({0.0, -0.0}), DType::kBool).ints, (Ints{0, 0}));
  ExpectSame(RunTyped("cast", I(DType::kI32, {16777217, -3}), DType::kF32).floats, {16777216, -3});
  ExpectSame(RunTyped("cast", I(DType::kU64, {-1}), DType::kF64).floats, {18446744073709551616.0});
  EXPECT_EQ(RunTyped("cast", I(DType::kI32, {-1, 257}), DType::kU8).ints, (Ints{255, 1}));
  ExpectSame(RunTyped("cast", F64({1}, {0.1}), DType::kF32).floats, {double{0.1f}});
}

TEST(Bitcast, KeepsTheBits) {
  EXPECT_EQ(RunTyped("bitcast", V({1, -0.0}), DType::kU32).ints, (Ints{0x3f800000, 0x80000000}));
  ExpectSame(RunTyped("bitcast", I(DType::kI32, {0x3f800000}), DType::kF32).floats, {1});
  EXPECT_EQ(RunTyped("bitcast", F64({1}, {1}), DType::kI64).ints, (Ints{0x3ff0000000000000}));
  EXPECT_EQ(RunTyped("bitcast", I(DType::kU32, {4294967295}), DType::kI32).ints, (Ints{-1}));
}

TEST(Reduce, SumsAndMaximaOverAxes) {
  const Array x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectSame(RunOp("reduce_sum", {x}, {0}).floats, {5, 7, 9});
  ExpectSame(RunOp("reduce_sum", {x}, {1}).floats, {6, 15});
  ExpectSame(RunOp("reduce_sum", {x}, {0, 1}).floats, {21});
  ExpectSame(RunOp("reduce_max", {F32({2, 2}, {1, kNan, -0.0, 0.0})}, {1}).floats, {kNan, 0.0});
  ExpectSame(RunOp("reduce_mean", {x}, Ints{1}).floats, {2, 5});
  EXPECT_EQ(RunOp("reduce_sum", {I(DType::kU8, {200, 100})}, {0}).ints, (Ints{44}));
  EXPECT_EQ(RunOp("reduce_max", {I(DType::kI32, {-5, -3})}, {0}).ints, (Ints{-3}));
}

TEST(Reduce, OfNothing) {
  ExpectSame(RunOp("reduce_sum", {F32({2, 0}, {})}, {1}).floats, {0, 0});
  ExpectSame(RunOp("reduce_max", {F32({2, 0}, {})}, {1}).floats, {-kInf, -kInf});
  ExpectSame(RunOp("reduce_mean", {F32({0}, {})}, Ints{}).floats, {kNan});
  EXPECT_EQ(RunOp("reduce_max", {I(DType::kI32, {})}, {0}).ints, (Ints{INT32_MIN}));
  EXPECT_TRUE(RunOp("reduce_sum", {F32({0, 3}, {})}, {1}).floats.empty());
}

TEST(Matmul, AgainstHandValues) {
  const Array a = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array b = F32({3, 2}, {7, 8, 9, 10, 11, 12});
  ExpectSame(RunOp("matmul", {a, b}).floats, {58, 64, 139, 154});
  const Array c = F32({2, 1, 2}, {1, 2, 3, 4});
  const Array d = F32({2, 2, 1}, {5, 6, 7, 8});
  ExpectSame(RunOp("matmul", {c, d}).floats, {17, 53});
  ExpectSame(RunOp("matmul", {F32({2, 0}, {}), F32({0, 2}, {})}).floats, {0, 0, 0, 0});
  ExpectSame(RunOp("matmul", {F32({1, 2}, {0, 1}), F32({2, 1}, {kInf, 1})}).floats, {kNan});
}

TEST(Movement, AgainstHandValues) {
  const Array x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectSame(RunOp("permute", {x}, {1, 0}).floats, {1, 4, 2, 5, 3, 6});
  ExpectSame(RunOp("transpose", {x}).floats, {1, 4, 2, 5, 3, 6});
  ExpectSame(RunOp("expand", {V({1, 2})}, {2, 2}).floats, {1, 2, 1, 2});
  ExpectSame(RunOp("expand", {F32({2, 1}, {1, 2})}, {2, 2}).floats, {1, 1, 2, 2});
  ExpectSame(RunOp("expand", {F32({1}, {1})}, {0}).floats, {});
  ExpectSame(RunOp("pad", {x}, {0, 1, 1, 0}).floats, {0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0});
  ExpectSame(RunOp("slice", {x}, {0, 2, 1, 0, 3, 2}).floats, {1, 3, 4, 6});
  ExpectSame(RunOp("slice", {x}, {1, 2, 1, 1, 3, 1}).floats, {5, 6});
  ExpectSame(RunOp("flip", {x}, {1}).floats, {3, 2, 1, 6, 5, 4});
  ExpectSame(RunOp("flip", {x}, {0, 1}).floats, {6, 5, 4, 3, 2, 1});
  EXPECT_EQ(RunOp("flip", {I(DType::kI32, {1, 2, 3})}, {0}).ints, (Ints{3, 2, 1}));
  ExpectSame(RunOp("permute", {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6})}, {2, 1, 0}).floats,
             {1, 4, 2, 5, 3, 6});
}

TEST(Indexing, GatherReadsZeroOutside) {
  const Array x = F32({3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectSame(RunOp("gather", {x, I(DType::kI32, {2, -1, 0, 3})}).floats, {5, 6, 0, 0, 1, 2, 0, 0});
  EXPECT_EQ(RunOp("gather", {x, Array::Ints(DType::kI64, {2, 1}, {0, 1})}).shape, (Shape{2, 1, 2}));
}

TEST(Indexing, ScatterAddIsAscendingAndDropsOutside) {
  // In this order 2^24 + 1 + 1 is 2^24 in f32; in the other it would be 2^24 + 2.
  const double big = 16777216;
  ExpectSame(
      RunOp("scatter_add", {I(DType::kI32, {1, 1, 7, 1, -2}), V({big, 1, 9, 1, 9})}, {2}).floats,
      {0, big});
  ExpectSame(RunOp("scatter_add", {I(DType::kI32, {1, 1, 1}), V({1, 1, big})}, {2}).floats,
             {0, big + 2});
}

TEST(Leaves, IotaAndRandom) {
  Graph g;
  Attributes attr;
  attr.ints = {2, 3};
  attr.axis = 1;
  attr.dtype = DType::kI32;
  g.AddOutput("iota", g.Add(Op::kIota, {}, attr));
  attr = {};
  attr.ints = {3};
  g.AddOutput("random", g.Add(Op::kRandom, {g.AddLiteral(9, DType::kU64)}, attr));
  const std::vector<Array> out = Evaluate(g, {}, kOwn);
  EXPECT_EQ(out[0].ints, (Ints{0, 1, 2, 0, 1, 2}));
  ExpectSame(out[1].floats, {UniformAt(9, 0), UniformAt(9, 1), UniformAt(9, 2)});
}

TEST(Precision, OwnDTypeRoundsEachOpAndTheOracleDoesNot) {
  const Array a = V({1});
  const Array b = V({1e-9});
  EXPECT_EQ(RunOp("add", {a, b}).floats[0], 1);
  EXPECT_EQ(RunOp("add", {a, b}, Attributes(), Precision::kOracle).floats[0], 1 + 1e-9);
}

// What an expert expects at the edges.
TEST(Derived, ExpAndLogAtTheEndOfF32) {
  const Array e = RunOp("exp", {V({88, 89, -kInf, kInf, kNan, -104})});
  EXPECT_NEAR(e.floats[0] / std::exp(88.0), 1, 1e-5);
  EXPECT_EQ(e.floats[1], kInf);
  ExpectSame({e.floats.begin() + 2, e.floats.end()}, {0, kInf, kNan, 0});
  const Array l = RunOp("log", {e});
  EXPECT_NEAR(l.floats[0], 88, 1e-5);
  EXPECT_EQ(l.floats[1], kInf);
  EXPECT_EQ(l.floats[2], -kInf);
}

TEST(Derived, SaturatingFunctionsHaveTheirLimits) {
  const Array x = V({-kInf, -1000, -88, 0, 88, 1000, kInf, kNan});
  const Array s = RunOp("sigmoid", {x});
  ExpectSame(
      {s.floats[0], s.floats[1], s.floats[3], s.floats[4], s.floats[5], s.floats[6], s.floats[7]},
      {0, 0, 0.5, 1, 1, 1, kNan});
  EXPECT_GT(s.floats[2], 0);
  ExpectSame(RunOp("tanh", {x}).floats, {-1, -1, -1, 0, 1, 1, 1, kNan});
  ExpectSame(RunOp("relu", {x}).floats, {0, 0, 0, 0, 88, 1000, kInf, kNan});
  ExpectSame(RunOp("abs", {V({-0.0, -3, kNan, -kInf})}).floats, {0.0, 3, kNan, kInf});
  ExpectSame(RunOp("sign", {V({-2, -0.0, 5, kNan})}).floats, {-1, -0.0, 1, kNan});
  ExpectSame(RunOp("floor", {V({-1.5, -2, 2.7, 0.0})}).floats, {-2, -2, 2, 0});
  ExpectSame(RunOp("softplus", {V({-kInf, 1000, kNan})}).floats, {0, 1000, kNan});
  ExpectSame(RunOp("relu", {V({1e-45, 1e-40, -1e-45})}).floats,
             {double{1e-45f}, double{1e-40f}, 0.0});
}

TEST(Derived, VarianceOfOneElementIsZero) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {1});
  const NodeId mean = Apply(g, "reduce_mean", {x});
  const NodeId centred = Apply(g, "sub", {x, g.Expand(mean, {1})});
  g.AddOutput("variance", Apply(g, "reduce_mean", {Apply(g, "square", {centred})}));
  const Array in[] = {V({3.7})};
  EXPECT_EQ(Evaluate(g, in, kOwn)[0].floats[0], 0);
}

// softmax(x) = exp(x - max x) / sum.
TEST(Derived, SoftmaxWithMinusInfinity) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2, 3});
  const NodeId top = g.Expand(g.Reshape(g.ReduceMax(x, {1}), {2, 1}), {2, 3});
  const NodeId e = Apply(g, "exp", {Apply(g, "sub", {x, top})});
  const NodeId sum = g.Expand(g.Reshape(g.ReduceSum(e, {1}), {2, 1}), {2, 3});
  g.AddOutput("softmax", Apply(g, "div", {e, sum}));
  const Array in[] = {F32({2, 3}, {-kInf, 0, 0, -kInf, -kInf, -kInf})};
  ExpectSame(Evaluate(g, in, kOwn)[0].floats, {0, 0.5, 0.5, kNan, kNan, kNan});
}

TEST(Evaluate, ChecksItsInputs) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2});
  g.AddOutput("y", g.Unary(Op::kNeg, x));
  EXPECT_EQ(ErrorOf([&] { Evaluate(g, {}, kOwn); }), "the graph has 1 inputs, got 0");
  const Array wrong[] = {V({1, 2, 3})};
  EXPECT_EQ(ErrorOf([&] { Evaluate(g, wrong, kOwn); }), "input 'x' is declared f32[2], got f32[3]");
  const NodeId big = g.Expand(g.Const(1), {int64_t{1} << 39}, "big");
  const Array right[] = {V({1, 2})};
  EXPECT_NE(ErrorOf([&] {
              EvaluateNodes(g, right, std::vector{big}, kOwn);
            }).find("too large to interpret"),
            std::string::npos);
}

}  // namespace
}  // namespace l3c::tensor
