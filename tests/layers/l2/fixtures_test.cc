// Layers, losses and updates against figures that bench/peer_scripts/method_fixtures.py recorded
// from jax and optax: values and gradients norm-wise to 1e-10 in f64 and 1e-5 in f32, updates over
// ten steps of recorded gradients likewise.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/l2/expand.h"
#include "layers/l2/layers.h"
#include "layers/l2/losses.h"
#include "layers/l2/updates.h"
#include "layers/support/parser.h"
#include "layers/tensor/differentiate.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

using Json = nlohmann::json;
using tensor::Array;
using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

Json Load(const std::string& name) {
  std::ifstream file(std::string(L3C_SOURCE_DIR) + "/tests/layers/l2/fixtures/" + name);
  return Json::parse(file);
}

Array ToArray(const Json& json, DType dtype) {
  return Array::Floats(dtype, json.at("shape").get<Shape>(),
                       json.at("values").get<std::vector<double>>());
}

// ‖a − b‖ / max(‖b‖, 1)
double NormError(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(error) / std::max(std::sqrt(norm), 1.0);
}

double Tolerance(DType dtype) { return dtype == DType::kF64 ? 1e-10 : 1e-5; }

std::vector<Array> Evaluate(const Graph& g, const std::vector<Array>& inputs,
                            const std::vector<NodeId>& nodes) {
  return tensor::EvaluateNodes(g, inputs, nodes, tensor::Precision::kOwnDType);
}

void CheckLayer(const Json& c, DType dtype) {
  SCOPED_TRACE(c.at("form").get<std::string>() + " " + std::string(tensor::DTypeName(dtype)));
  const Form form = testing::ReadForm(c.at("form"), Family::kLayer);
  const LayerEntry& entry = *FindLayer(form.name);
  Graph g;
  std::vector<Array> values;
  std::vector<NodeId> inputs;
  for (const Json& input : c.at("inputs")) {
    values.push_back(ToArray(input, dtype));
    inputs.push_back(g.AddInput("x" + std::to_string(inputs.size()), dtype, values.back().shape));
  }
  const Shape& x = values[0].shape;
  const std::vector<Shape> sample = {Shape(x.begin() + 1, x.end())};
  if (entry.parameters) {
    const auto parameters = entry.parameters(form, sample);
    ASSERT_EQ(parameters.size() + 1, inputs.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[i].shape, values[i + 1].shape);
    }
  }
  const NodeId y = entry.expand(g, form, std::span(inputs).first(1), std::span(inputs).subspan(1));
  std::string error;
  const auto shape = entry.shape(form, sample, &error);
  ASSERT_TRUE(shape.has_value()) << error;
  EXPECT_EQ(Shape(g.node(y).shape.begin() + 1, g.node(y).shape.end()), *shape);
  values.push_back(ToArray(c.at("weight"), dtype));
  const NodeId weight = g.AddInput("weight", dtype, values.back().shape);
  const NodeId loss = SumAll(g, Mul(g, y, weight));
  const std::vector<double> output = Evaluate(g, values, {y})[0].floats;
  EXPECT_LT(NormError(output, ToArray(c.at("output"), dtype).floats), Tolerance(dtype));
  const size_t first = c.at("through_x").get<bool>() ? 0 : 1;
  const tensor::Gradients gradients =
      tensor::Differentiate(g, loss, std::span(inputs).subspan(first));
  const std::vector<Array> got = Evaluate(g, values, gradients.nodes);
  ASSERT_EQ(got.size(), c.at("gradients").size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT(NormError(got[i].floats, ToArray(c.at("gradients")[i], dtype).floats),
              Tolerance(dtype))
        << "gradient " << i;
  }
}

TEST(L2Fixtures, LayersAgreeWithJax) {
  for (const Json& c : Load("layers.json")) {
    CheckLayer(c, DType::kF64);
    CheckLayer(c, DType::kF32);
  }
}

void CheckLoss(const Json& c, DType dtype) {
  const std::string kind = c.at("kind");
  SCOPED_TRACE(c.at("form").get<std::string>() + " " + kind + " " +
               std::string(tensor::DTypeName(dtype)));
  const Form form = testing::ReadForm(c.at("form"), Family::kLoss);
  Graph g;
  const std::vector<Array> values = {ToArray(c.at("output"), dtype),
                                     ToArray(c.at("target"), dtype)};
  const NodeId given = g.AddInput("output", dtype, values[0].shape);
  LossOperands operands;
  operands.output = given;
  operands.target = g.AddInput("target", dtype, values[1].shape);
  operands.target_is_label = kind == "label";
  if (kind != "tensor") {
    operands.classes = values[0].shape.back();
    operands.output = Softmax(g, given);
    operands.log_output = LogSoftmax(g, given);
  }
  const LossRows rows = FindLoss(form.name)->expand(g, form, operands);
  const std::vector<double> found = Evaluate(g, values, {rows.loss})[0].floats;
  EXPECT_LT(NormError(found, ToArray(c.at("rows"), dtype).floats), Tolerance(dtype));
  const tensor::Gradients gradients =
      tensor::Differentiate(g, SumAll(g, rows.loss), std::vector{given});
  EXPECT_LT(NormError(Evaluate(g, values, gradients.nodes)[0].floats,
                      ToArray(c.at("gradient"), dtype).floats),
            Tolerance(dtype));
}

TEST(L2Fixtures, LossesAgreeWithOptax) {
  for (const Json& c : Load("losses.json")) {
    CheckLoss(c, DType::kF64);
    CheckLoss(c, DType::kF32);
  }
}

void CheckUpdate(const Json& all, const Json& c, DType dtype) {
  SCOPED_TRACE(c.at("form").get<std::string>() + " " + std::string(tensor::DTypeName(dtype)));
  std::vector<Parameter> parameters;
  for (const auto& [name, start] : all.at("start").items()) {
    parameters.push_back({name, start.at("shape").get<Shape>(), Init::kZeros, 0});
  }
  const UpdateGraph update = ExpandUpdate(testing::ReadForm(c.at("form"), Family::kUpdate),
                                          parameters, c.at("total").get<int64_t>(), dtype);
  std::map<std::string, Array> values;
  for (NodeId id : update.graph.inputs()) {
    const tensor::Node& node = update.graph.node(id);
    values[node.name] = Array::Zeros(node.dtype, node.shape);
  }
  for (const auto& [name, start] : all.at("start").items()) values[name] = ToArray(start, dtype);
  for (size_t step = 0; step < c.at("history").size(); ++step) {
    for (const auto& [name, grad] : all.at("gradients")[step].items()) {
      values[name + "_grad"] = ToArray(grad, dtype);
    }
    std::vector<Array> inputs;
    for (NodeId id : update.graph.inputs()) inputs.push_back(values[update.graph.node(id).name]);
    const auto outputs = tensor::Evaluate(update.graph, inputs, tensor::Precision::kOwnDType);
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[update.graph.outputs()[i].name] = outputs[i];
    }
    for (const auto& [name, expected] : c.at("history")[step].items()) {
      EXPECT_LT(NormError(values.at(name).floats, ToArray(expected, dtype).floats),
                Tolerance(dtype))
          << name << " after step " << step + 1;
    }
  }
}

TEST(L2Fixtures, UpdatesAgreeWithOptaxForTenSteps) {
  const Json all = Load("updates.json");
  for (const Json& c : all.at("cases")) {
    CheckUpdate(all, c, DType::kF64);
    CheckUpdate(all, c, DType::kF32);
  }
}

}  // namespace
}  // namespace l3c::l2
