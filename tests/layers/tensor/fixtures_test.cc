// Values and gradients against figures that bench/peer_scripts/tensor_gradients.py recorded:
// norm-wise 1e-10 in f64, 1e-5 in f32.

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "layers/tensor/differentiate.h"
#include "tests/layers/tensor/testing.h"

namespace l3c::tensor {
namespace {

using Json = nlohmann::json;
using Inputs = std::vector<NodeId>;
using Build = std::function<NodeId(Graph&, const Inputs&)>;

Json Load(const std::string& name) {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/tests/layers/tensor/fixtures/" + name);
  return Json::parse(file);
}

Array ToArray(const Json& json, DType dtype) {
  return Array::Floats(dtype, json.at("shape").get<Shape>(),
                       json.at("values").get<std::vector<double>>());
}

NodeId SumAll(Graph& g, NodeId value) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < g.node(value).shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? value : g.ReduceSum(value, axes);
}

// A [rows] vector as a column repeated to `shape`.
NodeId AlongRows(Graph& g, NodeId v, const Shape& shape) {
  return g.Expand(g.Reshape(v, {shape[0], 1}), shape);
}

NodeId LayerNorm(Graph& g, NodeId x, NodeId gamma, NodeId beta) {
  const Shape shape = g.node(x).shape;
  const NodeId mean = Apply(g, "reduce_mean", {x}, {1});
  const NodeId centred = Apply(g, "sub", {x, AlongRows(g, mean, shape)});
  const NodeId variance = Apply(g, "reduce_mean", {Apply(g, "square", {centred})}, {1});
  const NodeId eps = g.Full(1e-5, {shape[0]}, g.node(x).dtype);
  const NodeId scale = Apply(g, "rsqrt", {g.Binary(Op::kAdd, variance, eps)});
  const NodeId normed = g.Binary(Op::kMul, centred, AlongRows(g, scale, shape));
  return g.Binary(Op::kAdd, g.Binary(Op::kMul, normed, g.Expand(gamma, shape)),
                  g.Expand(beta, shape));
}

NodeId CrossEntropy(Graph& g, NodeId logits, NodeId target) {
  const Shape shape = g.node(logits).shape;
  const NodeId top = Apply(g, "stop_gradient", {g.ReduceMax(logits, {1})});
  const NodeId shifted = Apply(g, "sub", {logits, AlongRows(g, top, shape)});
  const NodeId sum = g.ReduceSum(Apply(g, "exp", {shifted}), {1});
  const NodeId log = Apply(g, "sub", {shifted, AlongRows(g, Apply(g, "log", {sum}), shape)});
  const NodeId picked = g.ReduceSum(g.Binary(Op::kMul, target, log), {1});
  return g.Unary(Op::kNeg, Apply(g, "reduce_mean", {picked}));
}

NodeId Linear(Graph& g, NodeId x, NodeId w, NodeId b) {
  const NodeId product = g.Matmul(x, w);
  return g.Binary(Op::kAdd, product, g.Expand(b, g.node(product).shape));
}

NodeId Mlp(Graph& g, const Inputs& in) {
  const NodeId h = LayerNorm(g, Linear(g, in[0], in[1], in[2]), in[3], in[4]);
  return CrossEntropy(g, Linear(g, Apply(g, "gelu", {h}), in[5], in[6]), in[7]);
}

void CheckCase(const Json& c, const Build& build, DType dtype) {
  SCOPED_TRACE(c.at("name").get<std::string>() + " " + std::string(DTypeName(dtype)));
  const double tolerance = dtype == DType::kF64 ? 1e-10 : 1e-5;
  Graph g;
  Inputs ids;
  std::vector<Array> inputs;
  for (const Json& input : c.at("inputs")) {
    inputs.push_back(ToArray(input, dtype));
    ids.push_back(g.AddInput("x" + std::to_string(ids.size()), dtype, inputs.back().shape));
  }
  const NodeId output = build(g, ids);
  const Array weight = ToArray(c.at("weight"), dtype);
  const NodeId weight_id = g.AddInput("weight", dtype, weight.shape);
  const NodeId loss = SumAll(g, g.Binary(Op::kMul, output, weight_id));
  inputs.push_back(weight);
  const Array value = EvaluateNodes(g, inputs, std::vector{output}, Precision::kOwnDType)[0];
  EXPECT_LT(NormError(value.floats, ToArray(c.at("output"), dtype).floats), tolerance);
  const Gradients gradients = Differentiate(g, loss, ids);
  const std::vector<Array> got = EvaluateNodes(g, inputs, gradients.nodes, Precision::kOwnDType);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_LT(NormError(got[i].floats, ToArray(c.at("gradients")[i], dtype).floats), tolerance)
        << "gradient of input " << i;
  }
}

TEST(Fixtures, DerivedOpsMatchJax) {
  const Json cases = Load("derived.json");
  ASSERT_GE(cases.size(), 20u);
  for (const Json& c : cases) {
    const std::string op = c.at("name");
    const Build build = [&](Graph& g, const Inputs& in) { return Apply(g, op, in); };
    CheckCase(c, build, DType::kF64);
    CheckCase(c, build, DType::kF32);
  }
}

TEST(Fixtures, ComposedGraphsMatchJax) {
  const Build matmul = [](Graph& g, const Inputs& in) { return g.Matmul(in[0], in[1]); };
  const std::map<std::string, Build> builds = {
      {"layernorm", [](Graph& g, const Inputs& in) { return LayerNorm(g, in[0], in[1], in[2]); }},
      {"cross_entropy", [](Graph& g, const Inputs& in) { return CrossEntropy(g, in[0], in[1]); }},
      {"matmul", matmul},
      {"matmul_batched", matmul},
      {"matmul_left_transposed",
       [](Graph& g, const Inputs& in) { return g.Matmul(g.Transpose(in[0]), in[1]); }},
      {"matmul_right_transposed",
       [](Graph& g, const Inputs& in) { return g.Matmul(in[0], g.Transpose(in[1])); }},
      {"linear", [](Graph& g, const Inputs& in) { return Linear(g, in[0], in[1], in[2]); }},
      {"mlp", Mlp},
  };
  const Json cases = Load("composed.json");
  ASSERT_EQ(cases.size(), builds.size());
  for (const Json& c : cases) {
    CheckCase(c, builds.at(c.at("name")), DType::kF64);
    CheckCase(c, builds.at(c.at("name")), DType::kF32);
  }
}

}  // namespace
}  // namespace l3c::tensor
