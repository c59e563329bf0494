// Training graphs cut by rows: the parts, put together, give what the whole gives.
#include "layers/l1/row_shares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/interpreter.h"
#include "layers/tensor/interpreter.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using tensor::Array;
using tensor::DType;
using tensor::Graph;
using Values = std::map<std::string, Array>;

Program LowerFile(const std::string& path) {
  const l2::Module module = ParseL2(ReadText(path));
  LowerOptions options;
  options.system = TestHost();
  for (const l3::Data& data : module.spec.data) {
    options.data[data.name] = {"data/" + data.name, {{"train", 6000}, {"test", 100}}};
  }
  auto result = Lower(module, options);
  EXPECT_TRUE(result.ok()) << path;
  return result.ok() ? result.best() : Program{};
}

Values Evaluate(const Graph& graph, const Values& values) {
  std::vector<Array> inputs;
  for (tensor::NodeId id : graph.inputs()) {
    const auto value = values.find(graph.node(id).name);
    if (value == values.end()) {
      ADD_FAILURE() << "nothing is given for " << graph.node(id).name;
      return {};
    }
    inputs.push_back(value->second);
  }
  std::vector<Array> outputs = tensor::Evaluate(graph, inputs, tensor::Precision::kOracle);
  Values named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    named[graph.outputs()[i].name] = std::move(outputs[i]);
  }
  return named;
}

// A batch of random rows, of which the last few are padding.
Values RandomBatch(const TensorGraph& graph, int64_t padding, std::mt19937& random) {
  Values values;
  for (const std::string& arg : graph.args) {
    const tensor::Node& node = graph.graph.node(*graph.graph.Find(arg));
    const auto count = static_cast<size_t>(tensor::NumElements(node.shape));
    if (!tensor::IsFloat(node.dtype)) {
      std::vector<int64_t> ints(count);
      for (int64_t& value : ints) value = static_cast<int64_t>(random() % 2);
      values[arg] = Array::Ints(node.dtype, node.shape, ints);
      continue;
    }
    std::vector<double> floats(count);
    for (double& value : floats) value = static_cast<double>(random() % 1000) / 500 - 1;
    if (arg == "mask") {
      for (size_t i = 0; i < count; ++i) {
        floats[i] = static_cast<int64_t>(i) < node.shape[0] - padding ? 1 : 0;
      }
    }
    values[arg] = Array::Floats(node.dtype, node.shape, floats);
  }
  return values;
}

void ExpectClose(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.shape, b.shape) << what;
  ASSERT_EQ(a.ints, b.ints) << what;
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.floats.size(); ++i) {
    difference = std::max(difference, std::abs(a.floats[i] - b.floats[i]));
    size = std::max(size, std::abs(b.floats[i]));
  }
  EXPECT_LE(difference, 1e-10 * size) << what;
}

void ExpectPartsGiveTheWhole(const std::string& path, int64_t parts, int64_t padding) {
  const Program program = LowerFile(path);
  const TensorGraph* graph = FindGraph(program, "forward_backward");
  ASSERT_NE(graph, nullptr) << path;
  const int64_t rows = graph->graph.node(*graph->graph.Find(graph->args[0])).shape[0];
  std::string why;
  const auto shares = ShareRows(graph->graph, graph->args, rows, parts, &why);
  ASSERT_TRUE(shares) << path << ": " << why;
  ASSERT_EQ(shares->parts.size(), static_cast<size_t>(parts));

  std::mt19937 random(3);
  Values values = RandomBatch(*graph, padding, random);
  Interpreter state(program, 5, tensor::Precision::kOracle);
  for (const Actor& actor : program.actors) {
    for (const StateField& field : actor.state) {
      values[field.name] = state.State(actor.name, field.name);
    }
  }
  const Values whole = Evaluate(graph->graph, values);
  for (auto& [name, value] : Evaluate(shares->cut.graph, values)) values[name] = std::move(value);
  for (const SharedGraph& part : shares->parts) {
    for (auto& [name, value] : Evaluate(part.graph, values)) values[name] = std::move(value);
  }
  const Values reduced = Evaluate(shares->reduce.graph, values);
  ASSERT_EQ(reduced.size(), whole.size());
  for (const auto& [name, value] : whole) ExpectClose(reduced.at(name), value, path + " " + name);
}

TEST(L1RowSharesTest, PartsGiveTheWhole) {
  for (const char* path : {"tests/layers/l1/programs/mnist.l2", "examples/methods/cnn.l2",
                           "examples/methods/regression.l2", "examples/methods/contrastive.l2"}) {
    ExpectPartsGiveTheWhole(path, 4, 1);
  }
}

// Attention, an embedding that is read twice, dropout: the same mask in every part.
TEST(L1RowSharesTest, RandomNumbersAreThoseOfTheWholeBatch) {
  ExpectPartsGiveTheWhole("examples/methods/language.l2", 2, 0);
}

// A part may be padding and no more.
TEST(L1RowSharesTest, APartWithoutRowsAddsNothing) {
  ExpectPartsGiveTheWhole("tests/layers/l1/programs/mnist.l2", 4, 100);
}

// Each sample against each other one of the batch.
TEST(L1RowSharesTest, WhatMixesRowsIsRefused) {
  Graph graph;
  const tensor::NodeId x = graph.AddInput("x", DType::kF32, {8, 4});
  const tensor::NodeId w = graph.AddInput("w", DType::kF32, {4, 3});
  const tensor::NodeId h = graph.Matmul(x, w, "h");
  const tensor::NodeId pairs = graph.Matmul(h, graph.Transpose(h), "pairs");
  graph.AddOutput("sum", graph.ReduceSum(pairs, {0, 1}));
  std::string why;
  EXPECT_FALSE(ShareRows(graph, {"x"}, 8, 2, &why));
  EXPECT_EQ(why, "'pairs' of the training graph mixes the rows of a batch");
  EXPECT_FALSE(ShareRows(graph, {"x"}, 8, 3, &why));
  EXPECT_EQ(why, "8 rows are no 3 equal parts");
  Graph rows;
  const tensor::NodeId r = rows.AddInput("x", DType::kF32, {8, 4});
  rows.AddOutput("y", rows.Unary(tensor::Op::kNeg, r));
  EXPECT_FALSE(ShareRows(rows, {"x"}, 8, 2, &why));
  EXPECT_EQ(why, "output 'y' of the training graph has a row for each sample");
}

// What depends on the batch alone may mix its rows: it is computed from all of them.
TEST(L1RowSharesTest, WhatTheBatchAloneGivesIsComputedOnce) {
  Graph graph;
  const tensor::NodeId x = graph.AddInput("x", DType::kF32, {8, 4});
  const tensor::NodeId w = graph.AddInput("w", DType::kF32, {4, 4});
  const tensor::NodeId largest = graph.ReduceMax(x, {0, 1}, "largest");
  const tensor::NodeId scaled = graph.Binary(
      tensor::Op::kMul, x, graph.Unary(tensor::Op::kRecip, graph.Expand(largest, {8, 4})));
  graph.AddOutput("sum", graph.ReduceSum(graph.Matmul(scaled, w), {0, 1}));
  std::string why;
  const auto shares = ShareRows(graph, {"x"}, 8, 2, &why);
  ASSERT_TRUE(shares) << why;
  EXPECT_EQ(shares->parts[1].args, (std::vector<std::string>{"x_1", "largest"}));
  EXPECT_EQ(shares->reduce.args, (std::vector<std::string>{"sum_0", "sum_1"}));
}

}  // namespace
}  // namespace l3c::l1
