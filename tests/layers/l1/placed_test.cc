// Programs placed on the example systems: they verify as text, and the interpreter trains them to
// what one CPU gives.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "layers/l1/interpreter.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using tensor::Array;
using tensor::DType;
using Forced = std::map<std::string, std::string>;

System ExampleSystem(const std::string& name) {
  const auto program = ParseText(ReadText("examples/systems/" + name + ".l1"));
  return program ? program->system : System{};
}

std::string SmallMnist() {
  std::string text = ReadText("tests/layers/l1/programs/mnist.l2");
  for (const auto& [from, to] : {std::pair{"256", "16"}, {"batch: 128", "batch: 12"}}) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

search::LoweringResult<Program> LowerOn(const std::string& text, const std::string& system,
                                        const Forced& forced = {}) {
  LowerOptions options = MnistOptions();
  options.system = ExampleSystem(system);
  options.isas.clear();
  options.search.forced = forced;
  return Lower(ParseL2(text), options);
}

// Lowered, printed and read back: what the verifier has to say is a failure.
Program Placed(const std::string& text, const std::string& system, const Forced& forced = {}) {
  auto result = LowerOn(text, system, forced);
  EXPECT_TRUE(result.ok()) << system;
  if (!result.ok()) return {};
  const std::string printed = PrintProgram(result.best());
  const auto again = ParseText(printed);
  EXPECT_TRUE(again) << printed;
  if (!again) return {};
  EXPECT_EQ(PrintProgram(*again), printed);
  return *again;
}

// A few steps of training and an evaluation; the parameters and what was reported.
std::map<std::string, Array> Train(const Program& program) {
  std::mt19937 random(17);
  Interpreter interpreter(program, 3, tensor::Precision::kOracle);
  std::map<std::string, Array> results;
  for (int step = 0; step < 3; ++step) {
    std::vector<double> images(12 * 784), valid(12, 1);
    std::vector<int64_t> labels(12);
    for (double& value : images) value = static_cast<double>(random() % 1000) / 1000;
    for (int64_t& value : labels) value = static_cast<int64_t>(random() % 10);
    if (step == 2) valid[10] = valid[11] = 0;
    const std::map<std::string, Array> rows = {
        {"images", Array::Floats(DType::kF32, {12, 28, 28}, images)},
        {"labels", Array::Ints(DType::kU8, {12, 1}, labels)},
        {"valid", Array::Floats(DType::kF32, {12}, valid)}};
    const Pipeline& pipeline = *FindPipeline(program, step == 2 ? "test" : "train");
    for (auto& [name, value] : interpreter.RunRows(pipeline, rows)) {
      for (const Metric& metric : program.schedule.metrics) {
        const bool reported = name == metric.numerator || name == metric.denominator;
        if (reported) results[std::to_string(step) + " " + name] = value;
      }
    }
  }
  for (const StateField& field : program.actors[0].state) {
    results[field.name] = interpreter.State("model_state", field.name);
    // Copies begin as the first and stay what it is, bit by bit.
    for (const Actor& copy : program.actors) {
      if (copy.replicates.empty()) continue;
      const Array other = interpreter.State(copy.name, field.name);
      EXPECT_EQ(results[field.name].floats, other.floats) << copy.name << "." << field.name;
      EXPECT_EQ(results[field.name].ints, other.ints) << copy.name << "." << field.name;
    }
  }
  return results;
}

void ExpectSame(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b,
                double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [name, value] : a) {
    const Array& other = b.at(name);
    ASSERT_EQ(value.floats.size(), other.floats.size()) << what << " " << name;
    EXPECT_EQ(value.ints, other.ints) << what << " " << name;
    double difference = 0, size = 0;
    for (size_t i = 0; i < value.floats.size(); ++i) {
      difference = std::max(difference, std::abs(value.floats[i] - other.floats[i]));
      size = std::max(size, std::abs(value.floats[i]));
    }
    EXPECT_LE(difference, tolerance * size) << what << " " << name;
  }
}

TEST(L1PlacedTest, EveryPlacementTrainsToTheSame) {
  const std::string text = SmallMnist();
  const auto expected = Train(Placed(text, "one_cpu"));
  const std::string model = "l1/node.forward_backward", state = "l1/node.model_state";
  struct Case {
    std::string system;
    Forced forced;
    bool exact;  // no sum over rows is cut
  };
  const std::vector<Case> cases = {
      {"cpu_gpu", {{model, "gpu_0"}, {state, "gpu_0"}, {"l1/stages", "fused"}}, true},
      {"cpu_gpu", {{model, "gpu_0"}, {state, "gpu_0"}, {"l1/stages", "split"}}, true},
      {"cpu_gpu", {{model, "gpu_0"}, {state, "cpu_0"}}, true},
      {"cpu_gpu", {{model, "cpu_0"}, {state, "gpu_0"}}, true},
      {"cpu_gpu", {{"l1/partition", "data(2)"}, {state, "cpu_0"}}, false},
      {"two_hosts", {{model, "cpu_1"}, {state, "cpu_0"}, {"l1/staging", "ram_0"}}, true},
      {"two_hosts", {{"l1/partition", "data(2)"}, {state, "cpu_1"}}, false},
      {"four_gpus", {{"l1/partition", "data(4)"}, {state, "gpu_2"}}, false},
      {"four_gpus", {{model, "cpu_0+gpu_0+gpu_3"}}, false},
      {"four_gpus", {{"l1/partition", "data(4)"}, {"l1/gradients", "ring"}}, false},
      {"four_gpus", {{model, "gpu_1+gpu_2+gpu_3"}, {"l1/gradients", "ring"}}, false},
      {"two_hosts", {{"l1/partition", "data(2)"}, {"l1/gradients", "ring"}}, false},
      {"cpu_gpu", {{"l1/partition", "stages(2)"}, {"l1/cut", "2|1"}}, false},
      {"cpu_gpu", {{"l1/partition", "stages(2)"}, {"l1/cut", "1|2"}, {state, "cpu_0"}}, false},
      {"four_gpus", {{model, "gpu_0>gpu_1>gpu_3"}, {"l1/micro_batches", "4"}}, false},
      {"four_gpus", {{model, "gpu_1>gpu_2"}, {state, "gpu_0"}, {"l1/micro_batches", "2"}}, false},
  };
  for (const Case& c : cases) {
    std::string what = c.system;
    for (const auto& [id, label] : c.forced) what += " " + id + "=" + label;
    ExpectSame(expected, Train(Placed(text, c.system, c.forced)), c.exact ? 0 : 1e-9, what);
  }
}

// A shared step in the text: the batch is cut, handed out, computed on each, and added up.
TEST(L1PlacedTest, ASharedStepIsWrittenOut) {
  const Program program = Placed(ReadText("tests/layers/l1/programs/wide.l2"), "four_gpus",
                                 {{"l1/gradients", "gather"}});
  std::string links;
  for (const Reference& link : FindPipeline(program, "train")->links) links += link.name + " ";
  EXPECT_EQ(links,
            "load_train cut_train scatter_train forward_backward_0 carry_train_1 "
            "forward_backward_1 carry_train_2 forward_backward_2 carry_train_3 forward_backward_3 "
            "gather_train reduce_train model_state.GradUpdate ");
  for (int part = 0; part < 4; ++part) {
    const TensorGraph* graph = FindGraph(program, "forward_backward_" + std::to_string(part));
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(program.system.nodes[graph->node].name, "gpu_" + std::to_string(part));
    const tensor::Node& images = graph->graph.node(*graph->graph.Find(graph->args[0]));
    EXPECT_EQ(images.shape, (tensor::Shape{2048, 28, 28}));
  }
}

// Gradients in a ring: each hop moves every bucket on by one node, then all that is whole goes
// round.
TEST(L1PlacedTest, ARingIsWrittenOut) {
  const Program program =
      Placed(ReadText("tests/layers/l1/programs/wide.l2"), "four_gpus",
             {{"l1/node.forward_backward", "gpu_0+gpu_1+gpu_2+gpu_3"}, {"l1/gradients", "ring"}});
  std::string links;
  for (const Reference& link : FindPipeline(program, "train")->links) links += link.name + " ";
  EXPECT_EQ(links,
            "load_train cut_train scatter_train forward_backward_0 forward_backward_1 "
            "forward_backward_2 forward_backward_3 "
            "ring_train_1 add_train_1_1 add_train_1_2 add_train_1_3 add_train_1_0 "
            "ring_train_2 add_train_2_2 add_train_2_3 add_train_2_0 add_train_2_1 "
            "ring_train_3 add_train_3_3 add_train_3_0 add_train_3_1 add_train_3_2 spread_train "
            "reduce_train model_state.GradUpdate reduce_1_train model_state_1.GradUpdate "
            "reduce_2_train model_state_2.GradUpdate reduce_3_train model_state_3.GradUpdate ");
  EXPECT_EQ(program.actors[3].replicates, "model_state");
  EXPECT_FALSE(program.actors[3].state[0].parameter);  // counted once
  EXPECT_EQ(program.system.nodes[program.actors[3].node].name, "gpu_3");
  // Every gradient has the parts of all nodes, each once, in the order of the ring.
  const TensorGraph* first = FindGraph(program, "add_train_1_1");
  ASSERT_NE(first, nullptr);
  const std::string& part = first->args[0];
  EXPECT_EQ(part.substr(part.size() - 2), "_0");
  EXPECT_EQ(first->args[1], part.substr(0, part.size() - 2) + "_1");
}

// In stages: forward passes one after the other, backward passes in reverse, parameters once.
TEST(L1PlacedTest, StagesAreWrittenOut) {
  const Program program = Placed(ReadText("tests/layers/l1/programs/wide.l2"), "four_gpus",
                                 {{"l1/node.forward_backward", "gpu_0>gpu_1"},
                                  {"l1/node.model_state", "gpu_0"},
                                  {"l1/micro_batches", "2"},
                                  {"l1/cut", "1|2"}});
  std::string links;
  for (const Reference& link : FindPipeline(program, "train")->links) links += link.name + " ";
  EXPECT_EQ(links,
            "load_train cut_train carry_train_1 weights_train_1 carry_forward_train_0_0 "
            "forward_train_0_0 carry_forward_train_1_0 forward_train_1_0 carry_forward_train_0_1 "
            "forward_train_0_1 carry_forward_train_1_1 forward_train_1_1 carry_backward_train_1_0 "
            "backward_train_1_0 carry_backward_train_0_0 backward_train_0_0 "
            "carry_backward_train_1_1 backward_train_1_1 carry_backward_train_0_1 "
            "backward_train_0_1 sum_train_0 sum_train_1 gather_train "
            "reduce_train model_state.GradUpdate ");
  // The weights of the layers behind are where they are used, those of the first where they lie.
  const TensorGraph* weights = FindGraph(program, "weights_train_1");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->args, (std::vector<std::string>{"linear2_weight", "linear2_bias",
                                                     "linear3_weight", "linear3_bias"}));
  EXPECT_EQ(FindGraph(program, "forward_train_0_0")->reads.size(), 1u);
  EXPECT_TRUE(FindGraph(program, "forward_train_1_0")->reads.empty());
}

// An explanation without the lines of the rules, which move.
std::string Decisions(const search::Explanation& explanation) {
  std::istringstream lines(search::RenderExplanation(explanation));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("    rule ")) text += line + "\n";
  }
  return text;
}

// What each system is given, on record: the decisions and the program.
TEST(L1PlacedTest, PlacementsAreOnRecord) {
  for (const char* system : {"one_cpu", "cpu_gpu", "four_gpus", "two_hosts"}) {
    const auto result = LowerOn(ReadText("tests/layers/l1/programs/wide.l2"), system);
    ASSERT_TRUE(result.ok()) << system;
    const std::string golden = "tests/layers/l1/golden/placed_" + std::string(system);
    for (const auto& [suffix, text] : {std::pair{".txt", Decisions(result.explanation)},
                                       std::pair{".l1", PrintProgram(result.best())}}) {
      if (std::getenv("L3C_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(std::string(L3C_SOURCE_DIR) + "/" + golden + suffix) << text;
      }
      EXPECT_EQ(text, ReadText(golden + suffix)) << golden << suffix;
    }
  }
}

}  // namespace
}  // namespace l3c::l1
