#include "layers/tensor/differentiate.h"

#include <functional>

#include "layers/tensor/forward.h"
#include "layers/tensor/text.h"
#include "tests/layers/tensor/testing.h"

namespace l3c::tensor {
namespace {

// A function of some f64 inputs, as a graph: returns the node of its value.
using Build = std::function<NodeId(Graph&, const std::vector<NodeId>&)>;

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  Build build;
  double low = -2;  // inputs are uniform in [low, high]
  double high = 2;
};

// sum(value * weights), with weights that differ from element to element.
NodeId WeightedSum(Graph& g, NodeId value) {
  const Shape shape = g.node(value).shape;
  if (shape.empty()) return value;
  Attributes attr;
  attr.ints = {NumElements(shape)};
  attr.dtype = DType::kF64;
  const NodeId count = g.Add(Op::kIota, {}, attr);
  const NodeId weights =
      g.Unary(Op::kSin, Apply(g, "add", {count, g.Full(0.7, attr.ints, DType::kF64)}));
  const NodeId product = g.Binary(Op::kMul, g.Reshape(value, attr.ints), weights);
  return g.ReduceSum(product, {0});
}

std::vector<Array> RandomInputs(const Case& c, uint64_t seed) {
  PhiloxStream random(seed);
  std::vector<Array> inputs;
  for (const Shape& shape : c.shapes) {
    Array array = Array::Zeros(DType::kF64, shape);
    for (double& value : array.floats) value = c.low + (c.high - c.low) * random.NextUniform();
    inputs.push_back(array);
  }
  return inputs;
}

// Reverse and forward mode against central differences, norm-wise relative 1e-6 for each input.
void CheckCase(const Case& c) {
  SCOPED_TRACE(c.name);
  Graph forward;
  std::vector<NodeId> ids;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    ids.push_back(forward.AddInput("x" + std::to_string(i), DType::kF64, c.shapes[i]));
  }
  const NodeId loss = WeightedSum(forward, c.build(forward, ids));
  const std::vector<Array> inputs = RandomInputs(c, 17);

  Graph reverse = forward;
  const Gradients gradients = Differentiate(reverse, loss, ids);
  const std::vector<Array> got =
      EvaluateNodes(reverse, inputs, gradients.nodes, Precision::kOracle);

  constexpr double kStep = 1e-5;
  std::vector<std::vector<double>> want;
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(got[i].shape, inputs[i].shape);
    std::vector<double> differences;
    for (size_t j = 0; j < inputs[i].floats.size(); ++j) {
      std::vector<Array> moved = inputs;
      const auto at = [&](double step) {
        moved[i].floats[j] = inputs[i].floats[j] + step;
        return EvaluateNodes(forward, moved, std::vector{loss}, Precision::kOracle)[0].floats[0];
      };
      // Fourth-order central difference.
      differences.push_back((8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) /
                            (12 * kStep));
    }
    EXPECT_LT(NormError(got[i].floats, differences), 1e-6) << "input " << i;
    want.push_back(differences);
  }

  // Forward mode along a random direction must agree with the gradient's inner product.
  Graph tangent = forward;
  std::vector<NodeId> directions;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    directions.push_back(tangent.AddInput("v" + std::to_string(i), DType::kF64, c.shapes[i]));
  }
  const Tangents tangents = ForwardDifferentiate(tangent, std::vector{loss}, ids, directions);
  std::vector<Array> all = inputs;
  PhiloxStream random(23);
  double product = 0;
  double scale = 1e-9;
  for (size_t i = 0; i < inputs.size(); ++i) {
    all.push_back(RandomArray(random, DType::kF64, c.shapes[i]));
    for (size_t j = 0; j < got[i].floats.size(); ++j) {
      product += got[i].floats[j] * all.back().floats[j];
      scale += std::abs(got[i].floats[j] * all.back().floats[j]);
    }
  }
  const double along = EvaluateNodes(tangent, all, tangents.nodes, Precision::kOracle)[0].floats[0];
  EXPECT_LT(std::abs(along - product) / scale, 1e-10) << "forward mode";
}

Build Elementwise(const std::string& op) {
  return [op](Graph& g, const std::vector<NodeId>& in) { return Apply(g, op, in); };
}
Build WithInts(const std::string& op, std::vector<int64_t> ints) {
  return [=](Graph& g, const std::vector<NodeId>& in) { return Apply(g, op, in, ints); };
}

TEST(Differentiate, EveryElementwiseOpAgainstFiniteDifferences) {
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{1, 13, 1}, Shape{0}, Shape{2, 0}}) {
    const std::vector<Shape> one = {shape};
    const std::vector<Shape> two = {shape, shape};
    for (const char* op : {"neg", "sin", "exp2", "exp", "cos", "tanh", "sigmoid", "silu", "gelu",
                           "softplus", "relu", "abs", "square"}) {
      CheckCase({op, one, Elementwise(op)});
    }
    for (const char* op : {"recip", "log2", "sqrt", "log", "rsqrt"}) {
      CheckCase({op, one, Elementwise(op), 0.5, 3});
    }
    for (const char* op : {"add", "mul", "max", "sub", "min"}) {
      CheckCase({op, two, Elementwise(op)});
    }
    CheckCase({"div", two, Elementwise("div"), 0.5, 3});
    CheckCase({"mod", two, Elementwise("mod"), 0.5, 3});
    CheckCase({"where", two, [](Graph& g, const std::vector<NodeId>& in) {
                 return Apply(g, "where",
                              {Apply(g, "cmplt", in), in[0], Apply(g, "square", {in[1]})});
               }});
    CheckCase({"scale", {shape, {}}, Elementwise("scale")});
  }
}

TEST(Differentiate, EveryOtherOpAgainstFiniteDifferences) {
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_mean"}) {
    for (const std::vector<int64_t>& axes :
         {std::vector<int64_t>{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
      CheckCase({op, {{3, 2, 5}}, WithInts(op, axes)});
    }
  }
  CheckCase({"matmul", {{3, 7}, {7, 2}}, Elementwise("matmul")});
  CheckCase({"matmul 1xn", {{1, 5}, {5, 1}}, Elementwise("matmul")});
  CheckCase({"matmul of no rows", {{0, 3}, {3, 2}}, Elementwise("matmul")});
  CheckCase({"matmul over nothing", {{2, 0}, {0, 3}}, Elementwise("matmul")});
  CheckCase(
      {"matmul of x transposed", {{7, 3}, {7, 2}}, [](Graph& g, const std::vector<NodeId>& in) {
         return g.Matmul(g.Transpose(in[0]), in[1]);
       }});
  CheckCase({"matmul batched", {{2, 1, 3, 2}, {2, 1, 2, 5}}, Elementwise("matmul")});
  CheckCase({"reshape", {{2, 6}}, WithInts("reshape", {3, 4})});
  CheckCase({"permute", {{2, 3, 5}}, WithInts("permute", {2, 0, 1})});
  CheckCase({"transpose", {{2, 3, 5}}, Elementwise("transpose")});
  CheckCase({"expand scalar", {{}}, WithInts("expand", {3, 2})});
  CheckCase({"expand", {{3, 1, 5}}, WithInts("expand", {2, 3, 4, 5})});
  CheckCase({"expand ones", {{1, 1}}, WithInts("expand", {7, 1})});
  CheckCase({"pad", {{2, 3}}, WithInts("pad", {1, 0, 2, 3})});
  CheckCase({"slice", {{5, 7}}, WithInts("slice", {1, 4, 1, 2, 7, 1})});
  CheckCase({"slice step", {{5, 11, 2}}, WithInts("slice", {0, 5, 2, 1, 10, 3, 0, 2, 1})});
  CheckCase({"slice one", {{5, 7}}, WithInts("slice", {4, 5, 3, 0, 7, 9})});
  CheckCase({"slice none", {{5, 7}}, WithInts("slice", {2, 2, 1, 0, 7, 2})});
  CheckCase({"flip", {{3, 5}}, WithInts("flip", {1})});
  const auto index = [](Graph& g) {
    Attributes attr;
    attr.ints = {6};
    attr.dtype = DType::kI32;
    // 0, 1, 2, 0, 1, 2: repeats add up.
    const NodeId count = g.Add(Op::kIota, {}, attr);
    return Apply(g, "mod", {count, g.Full(3, {6}, DType::kI32)});
  };
  CheckCase({"gather", {{2, 5}}, [&](Graph& g, const std::vector<NodeId>& in) {
               return Apply(g, "gather", {in[0], index(g)});
             }});
  CheckCase({"scatter_add", {{6, 5}}, [&](Graph& g, const std::vector<NodeId>& in) {
               return Apply(g, "scatter_add", {index(g), in[0]}, {3, 5});
             }});
  CheckCase({"cast", {{3}}, [](Graph& g, const std::vector<NodeId>& in) {
               // In oracle mode f32 is not rounded, so this is the identity.
               return g.Cast(g.Cast(in[0], DType::kF32), DType::kF64);
             }});
}

NodeId LayerNorm(Graph& g, NodeId x, NodeId gamma, NodeId beta) {
  const Shape shape = g.node(x).shape;
  const DType dtype = g.node(x).dtype;
  const auto along_rows = [&](NodeId v) { return g.Expand(g.Reshape(v, {shape[0], 1}), shape); };
  const NodeId centred = Apply(g, "sub", {x, along_rows(Apply(g, "reduce_mean", {x}, {1}))});
  const NodeId variance = Apply(g, "reduce_mean", {Apply(g, "square", {centred})}, {1});
  const NodeId scale =
      Apply(g, "rsqrt", {g.Binary(Op::kAdd, variance, g.Full(1e-5, {shape[0]}, dtype))});
  const NodeId normed = g.Binary(Op::kMul, centred, along_rows(scale));
  return g.Binary(Op::kAdd, g.Binary(Op::kMul, normed, g.Expand(gamma, shape)),
                  g.Expand(beta, shape));
}

NodeId LogSoftmax(Graph& g, NodeId x) {
  const Shape shape = g.node(x).shape;
  const auto along_rows = [&](NodeId v) { return g.Expand(g.Reshape(v, {shape[0], 1}), shape); };
  const NodeId top = Apply(g, "stop_gradient", {g.ReduceMax(x, {1})});
  const NodeId shifted = Apply(g, "sub", {x, along_rows(top)});
  const NodeId sum = g.ReduceSum(Apply(g, "exp", {shifted}), {1});
  return Apply(g, "sub", {shifted, along_rows(Apply(g, "log", {sum}))});
}

NodeId Linear(Graph& g, NodeId x, NodeId w, NodeId b) {
  const NodeId product = g.Matmul(x, w);
  return g.Binary(Op::kAdd, product, g.Expand(b, g.node(product).shape));
}

NodeId Mlp(Graph& g, const std::vector<NodeId>& in) {
  const NodeId h = Apply(g, "gelu", {LayerNorm(g, Linear(g, in[0], in[1], in[2]), in[3], in[4])});
  const NodeId logits = Linear(g, h, in[5], in[6]);
  const Shape shape = g.node(logits).shape;
  // The labels 0, 1, 2, … as one-hot rows.
  Attributes attr;
  attr.ints = shape;
  attr.dtype = DType::kI32;
  const NodeId column = [&] {
    attr.axis = 1;
    return g.Add(Op::kIota, {}, attr);
  }();
  const NodeId row = [&] {
    attr.axis = 0;
    return g.Add(Op::kIota, {}, attr);
  }();
  const NodeId target = g.Cast(Apply(g, "cmpeq", {row, column}), g.node(logits).dtype);
  const NodeId picked = g.ReduceSum(g.Binary(Op::kMul, target, LogSoftmax(g, logits)), {1});
  return g.Unary(Op::kNeg, Apply(g, "reduce_mean", {picked}));
}

TEST(Differentiate, ComposedGraphsAgainstFiniteDifferences) {
  CheckCase({"layer norm", {{3, 7}, {7}, {7}}, [](Graph& g, const std::vector<NodeId>& in) {
               return LayerNorm(g, in[0], in[1], in[2]);
             }});
  CheckCase({"log softmax", {{3, 5}}, [](Graph& g, const std::vector<NodeId>& in) {
               return LogSoftmax(g, in[0]);
             }});
  CheckCase({"mlp", {{5, 3}, {3, 7}, {7}, {7}, {7}, {7, 5}, {5}}, Mlp});
  CheckCase({"shared", {{3, 3}}, [](Graph& g, const std::vector<NodeId>& in) {
               // The operand is used four ways.
               const NodeId t = g.Transpose(in[0]);
               return g.Binary(Op::kMul, g.Matmul(t, in[0]), g.Binary(Op::kAdd, in[0], t));
             }});
}

// Values and gradients of f32 graphs, in f32.
std::vector<double> GradientOf(const Build& build, const Array& x) {
  Graph g;
  const NodeId in = g.AddInput("x", x.dtype, x.shape);
  NodeId value = build(g, {in});
  const size_t rank = g.node(value).shape.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (rank > 0) value = g.ReduceSum(value, axes);
  const Gradients gradients = Differentiate(g, value, std::vector{in});
  return EvaluateNodes(g, std::vector{x}, gradients.nodes, Precision::kOwnDType)[0].floats;
}

TEST(Differentiate, KinksTiesAndSaturation) {
  ExpectSame(GradientOf(Elementwise("abs"), F32({3}, {-2, 0, 3})), {-1, 0, 1});
  ExpectSame(GradientOf(Elementwise("relu"), F32({4}, {-2, 0, 3, -0.0})), {0, 0, 1, 0});
  ExpectSame(GradientOf(WithInts("reduce_max", {0}), F32({4}, {1, 3, 3, 2})), {0, 0.5, 0.5, 0});
  ExpectSame(GradientOf(WithInts("reduce_max", {0}), F32({2}, {1, kNan})), {kNan, kNan});
  ExpectSame(GradientOf(Elementwise("sigmoid"), F32({5}, {-kInf, -1000, 0, 1000, kInf})),
             {0, 0, 0.25, 0, 0});
  ExpectSame(GradientOf(Elementwise("tanh"), F32({5}, {-kInf, -1000, 0, 1000, kInf})),
             {0, 0, 1, 0, 0});
  ExpectSame(GradientOf(Elementwise("softplus"), F32({5}, {-kInf, -1000, 0, 1000, kInf})),
             {0, 0, 0.5, 1, 1});
  ExpectSame(GradientOf(Elementwise("gelu"), F32({3}, {-1000, 0, 1000})), {0, 0.5, 1});
  ExpectSame(GradientOf(Elementwise("silu"), F32({3}, {-1000, 0, 1000})), {0, 0.5, 1});
}

TEST(Differentiate, ALossPlusZeroTimesNanStaysNan) {
  const Build build = [](Graph& g, const std::vector<NodeId>& in) {
    const NodeId zero = g.Full(0, {1});
    const NodeId nan = g.Full(kNan, {1});
    return g.Binary(Op::kAdd, in[0], g.Binary(Op::kMul, g.Binary(Op::kMul, zero, nan), in[0]));
  };
  ExpectSame(GradientOf(build, F32({1}, {2})), {kNan});
}

TEST(Differentiate, StopGradientIsAConstant) {
  const Build build = [](Graph& g, const std::vector<NodeId>& in) {
    return g.Binary(Op::kMul, in[0], Apply(g, "stop_gradient", {in[0]}));
  };
  ExpectSame(GradientOf(build, F32({1}, {3})), {3});
}

TEST(Differentiate, UnusedInputsGetZerosAndIntegersAreRefused) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2});
  const NodeId y = g.AddInput("y", DType::kF32, {3});
  const NodeId n = g.AddInput("n", DType::kI32, {2});
  const NodeId loss = g.ReduceSum(x, {0});
  const Gradients gradients = Differentiate(g, loss, std::vector{x, y});
  EXPECT_EQ(g.node(gradients.nodes[1]).name, "d_y");
  const std::vector<Array> in = {F32({2}, {1, 2}), F32({3}, {1, 2, 3}),
                                 Array::Ints(DType::kI32, {2}, {0, 0})};
  const std::vector<Array> got = EvaluateNodes(g, in, gradients.nodes, Precision::kOwnDType);
  ExpectSame(got[0].floats, {1, 1});
  ExpectSame(got[1].floats, {0, 0, 0});
  EXPECT_NE(ErrorOf([&] { Differentiate(g, loss, std::vector{n}); }).find("it is not a float"),
            std::string::npos);
  EXPECT_NE(ErrorOf([&] { Differentiate(g, x, std::vector{x}); }).find("a loss is a float scalar"),
            std::string::npos);
}

// Graphs of a user's size must not exhaust the stack.
TEST(Differentiate, ALongChainIsWalkedWithoutRecursion) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {});
  NodeId y = x;
  for (int i = 0; i < 20000; ++i) y = g.Unary(Op::kSin, y);
  const Gradients gradients = Differentiate(g, y, std::vector{x});
  const std::vector<Array> in = {F32({}, {0.5})};
  EXPECT_GT(EvaluateNodes(g, in, gradients.nodes, Precision::kOwnDType)[0].floats[0], 0);
}

// The text that a user would read: no seeds, no products with 1, transposes as views.
TEST(Differentiate, WritesNoNeedlessOps) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {4, 3});
  const NodeId w = g.AddInput("w", DType::kF32, {3, 2});
  const NodeId b = g.AddInput("b", DType::kF32, {2});
  const NodeId y = Linear(g, x, w, b);
  const NodeId e = Apply(g, "exp", {y}, {}, "e");
  const NodeId loss = Apply(g, "reduce_mean", {e}, {}, "loss");
  const Gradients gradients = Differentiate(g, loss, std::vector{w, b});
  std::string text;
  for (NodeId id = gradients.loss + 1; id < g.size(); ++id) {
    text += g.node(id).name + " = " + PrintApplication(g, id) + "\n";
  }
  EXPECT_EQ(text,
            "t13 = tensor_broadcast(t11, [4, 2])\n"
            "d_t5 = tensor_mul(e, t13)\n"
            "d_b = tensor_reduce_sum(d_t5, axis: 0)\n"
            "t16 = tensor_permute(x, [1, 0])\n"
            "d_w = tensor_matmul(t16, d_t5)\n");
}

TEST(Differentiate, EveryBackwardNodeOfAnMlpIsUsed) {
  Graph g;
  std::vector<NodeId> in;
  const std::vector<Shape> shapes = {{5, 3}, {3, 7}, {7}, {7}, {7}, {7, 5}, {5}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    in.push_back(g.AddInput("x" + std::to_string(i), DType::kF32, shapes[i]));
  }
  const NodeId loss = Mlp(g, in);
  g.AddOutput("loss", loss);
  const Gradients gradients = Differentiate(g, loss, in);
  for (size_t i = 0; i < in.size(); ++i) {
    g.AddOutput("d" + std::to_string(i), gradients.nodes[i]);
    EXPECT_EQ(g.node(gradients.nodes[i]).name, "d_x" + std::to_string(i));
  }
  const Graph live = RemoveDead(g);
  for (NodeId id = static_cast<NodeId>(in.size()); id < g.size(); ++id) {
    EXPECT_TRUE(live.Find(g.node(id).name))
        << g.node(id).name << " = " << PrintApplication(g, id) << " is not used";
  }
}

TEST(Differentiate, ADoubleTransposeIsNone) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {3, 4});
  const NodeId w = g.AddInput("w", DType::kF32, {3, 2});
  const NodeId y = g.Matmul(g.Transpose(x), w);
  const NodeId loss = g.ReduceSum(g.Binary(Op::kMul, y, y), {0, 1});
  const Gradients gradients = Differentiate(g, loss, std::vector{w});
  const Node& dw = g.node(gradients.nodes[0]);
  EXPECT_EQ(dw.op, Op::kMatmul);
  EXPECT_EQ(dw.inputs[0], x);
}

TEST(Differentiate, IsTheSameEveryTime) {
  const auto text = [] {
    Graph g;
    std::vector<NodeId> in;
    const std::vector<Shape> shapes = {{5, 3}, {3, 7}, {7}, {7}, {7}, {7, 5}, {5}};
    for (size_t i = 0; i < shapes.size(); ++i) {
      in.push_back(g.AddInput("x" + std::to_string(i), DType::kF32, shapes[i]));
    }
    Differentiate(g, Mlp(g, in), in);
    std::string all;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (g.node(id).op != Op::kInput) all += PrintApplication(g, id) + "\n";
    }
    return all;
  };
  EXPECT_EQ(text(), text());
}

// An op that exists only here: its expansion is all that it takes.
TEST(Differentiate, ADerivedOpOfATestIsInterpretedAndDifferentiated) {
  static const Op kBump = RegisterDerived(
      "test_bump", 2, "exp(-a^2) b", [](Graph& g, std::span<const NodeId> in, const Attributes&) {
        const NodeId e = Apply(g, "exp", {g.Unary(Op::kNeg, Apply(g, "square", {in[0]}))});
        return g.Binary(Op::kMul, e, in[1]);
      });
  EXPECT_EQ(Definition(kBump).l1_name, "tensor_test_bump");
  Graph g;
  const NodeId a = g.AddInput("a", DType::kF64, {2});
  const NodeId b = g.AddInput("b", DType::kF64, {2});
  const NodeId y = g.Binary(kBump, a, b);
  EXPECT_EQ(PrintApplication(g, y), "tensor_test_bump(a, b)");
  const std::vector<Array> in = {F64({2}, {0.5, -1}), F64({2}, {2, 3})};
  const std::vector<Array> out = EvaluateNodes(g, in, std::vector{y}, Precision::kOracle);
  EXPECT_NEAR(out[0].floats[1], 3 * std::exp(-1.0), 1e-14);
  CheckCase({"test_bump", {{3}, {3}}, Elementwise("test_bump")});
}

TEST(Forward, UnmovedOutputsHaveZeroTangents) {
  Graph g;
  const NodeId x = g.AddInput("x", DType::kF32, {2});
  const NodeId v = g.AddInput("v", DType::kF32, {2});
  const NodeId y = g.Unary(Op::kNeg, g.AddInput("z", DType::kF32, {3}));
  const Tangents tangents = ForwardDifferentiate(g, std::vector{y}, std::vector{x}, std::vector{v});
  const std::vector<Array> in = {F32({2}, {1, 2}), F32({2}, {1, 1}), F32({3}, {1, 2, 3})};
  ExpectSame(EvaluateNodes(g, in, tangents.nodes, Precision::kOwnDType)[0].floats, {0, 0, 0});
  EXPECT_NE(
      ErrorOf([&] { ForwardDifferentiate(g, std::vector{y}, std::vector{x}, std::vector{y}); }),
      "no error");
}

}  // namespace
}  // namespace l3c::tensor
