// From a method to a placed program.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

constexpr char kMnist[] = "tests/layers/l1/programs/mnist.l2";

std::string FailureText(const search::LoweringResult<Program>& result) {
  support::Diagnostics diagnostics;
  if (result.failure) search::ReportFailure(*result.failure, {}, diagnostics);
  return diagnostics.Render(false);
}

Program LowerMnist(const LowerOptions& options) {
  const auto result = Lower(ParseL2(ReadText(kMnist)), options);
  EXPECT_EQ(FailureText(result), "");
  return result.ok() ? result.best() : Program{};
}

// L3C_REGENERATE=1 writes the file anew; review the difference.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = "tests/layers/l1/golden/" + name;
  if (std::getenv("L3C_REGENERATE") != nullptr) {
    std::ofstream(std::string(L3C_SOURCE_DIR) + "/" + path) << text;
  }
  EXPECT_EQ(text, ReadText(path));
}

void ExpectSameGraph(const tensor::Graph& a, const tensor::Graph& b) {
  ASSERT_EQ(a.size(), b.size());
  for (tensor::NodeId id = 0; id < a.size(); ++id) {
    const tensor::Node& x = a.node(id);
    const tensor::Node& y = b.node(id);
    EXPECT_EQ(x.name, y.name) << id;
    EXPECT_EQ(x.op, y.op) << x.name;
    EXPECT_EQ(x.inputs, y.inputs) << x.name;
    EXPECT_EQ(x.attr, y.attr) << x.name;
    EXPECT_EQ(x.dtype, y.dtype) << x.name;
    EXPECT_EQ(x.shape, y.shape) << x.name;
  }
  ASSERT_EQ(a.outputs().size(), b.outputs().size());
  for (size_t i = 0; i < a.outputs().size(); ++i) {
    EXPECT_EQ(a.outputs()[i].name, b.outputs()[i].name);
    EXPECT_EQ(a.outputs()[i].node, b.outputs()[i].node);
  }
}

TEST(L1LowerTest, ReadBackFromTextItIsTheSameNodeByNode) {
  const Program program = LowerMnist(MnistOptions());
  const auto again = ParseText(PrintProgram(program));
  ASSERT_TRUE(again);
  ASSERT_EQ(program.graphs.size(), again->graphs.size());
  for (size_t i = 0; i < program.graphs.size(); ++i) {
    ExpectSameGraph(program.graphs[i].graph, again->graphs[i].graph);
  }
  ExpectSameGraph(program.actors[0].handlers[0].graph, again->actors[0].handlers[0].graph);
}

TEST(L1LowerTest, MnistIsTheProgramOnRecord) {
  const Program program = LowerMnist(MnistOptions());
  const std::string text = PrintProgram(program);
  ExpectGolden("mnist.l1", text);
  const auto again = ParseText(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(PrintProgram(*again), text);
}

std::string MnistText(const std::string& from, const std::string& to) {
  std::string text = ReadText(kMnist);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(L1LowerTest, WholeBatchesNeedNoMask) {
  const auto result =
      Lower(ParseL2(MnistText("drop_last: false", "drop_last: true")), MnistOptions());
  ASSERT_TRUE(result.ok());
  const Program& program = result.best();
  EXPECT_EQ(FindGraph(program, "forward_backward")->args,
            (std::vector<std::string>{"images", "labels"}));
  EXPECT_EQ(FindGraph(program, "evaluate")->args,
            (std::vector<std::string>{"images", "labels", "mask"}));
  EXPECT_FALSE(FindStage(program, "load_test")->sampling.drop_last);
  ASSERT_TRUE(ParseText(PrintProgram(program)));
}

// #[l1::on(NODE)] before a layer or a field holds the search to a node, or says at the annotation
// why it cannot.
TEST(L1LowerTest, AnnotationsPlace) {
  LowerOptions options = MnistOptions();
  SystemNode second = options.system.nodes[*FindNode(options.system, "cpu_0")];
  second.name = "cpu_1";
  const auto memory = LocalMemories(options.system, *FindNode(options.system, "cpu_0")).front();
  const auto node = static_cast<uint32_t>(options.system.nodes.size());
  options.system.nodes.push_back(second);
  options.system.edges.push_back({memory, node, true, 25e9, {}});
  const auto on = [&](const std::string& layer) {
    return MnistText("linear(256, 10)",
                     "\n        #[l1::on(" + layer + ")]\n        linear(256, 10)");
  };
  for (const std::string name : {"cpu_0", "cpu_1"}) {
    const auto placed = Lower(ParseL2(on(name)), options);
    ASSERT_TRUE(placed.ok()) << FailureText(placed);
    EXPECT_EQ(placed.best().system.nodes[FindGraph(placed.best(), "forward_backward")->node].name,
              name);
  }
  std::string both = on("cpu_0");
  both.replace(both.find("linear(784"), 7, "\n        #[l1::on(cpu_1)]\n        linear(");
  EXPECT_NE(FailureText(Lower(ParseL2(both), options)).find("disagrees with"), std::string::npos)
      << FailureText(Lower(ParseL2(both), options));
  options.search.forced["l1/node.forward_backward"] = "cpu_0";
  EXPECT_NE(FailureText(Lower(ParseL2(on("cpu_1")), options)).find("disagrees with the annotation"),
            std::string::npos);
  options.search.forced.clear();
  EXPECT_NE(FailureText(Lower(ParseL2(on("ssd_0")), options)).find("no compute node 'ssd_0'"),
            std::string::npos);
  const auto lies = [&](const std::string& storage) {
    return Lower(ParseL2(MnistText("    images :", "    #[l1::on(" + storage + ")]\n    images :")),
                 options);
  };
  EXPECT_TRUE(lies("ssd_0").ok()) << FailureText(lies("ssd_0"));
  EXPECT_NE(FailureText(lies("tape")).find("no storage node 'tape'"), std::string::npos);
}

TEST(L1LowerTest, OnAGpuBatchesAreCarriedThere) {
  LowerOptions options = MnistOptions();
  options.isas = {"x86_64", "cuda"};
  options.system = ParseText(
                       "system box {\n"
                       "    node ssd_0 { kind: storage }\n"
                       "    node ram_0 { kind: memory, capacity: 32GB }\n"
                       "    node cpu_0 { kind: compute, isa: x86_64, cores: 1 }\n"
                       "    node gpu_0 { kind: compute, isa: cuda, vram: 24GB, sm: 84 }\n"
                       "    edges {\n"
                       "        ssd_0 -> ram_0 : bandwidth 2GB/s\n"
                       "        ram_0 <-> cpu_0 : bandwidth 50GB/s\n"
                       "        cpu_0 <-> gpu_0 : bandwidth 32GB/s\n"
                       "    }\n"
                       "}\n")
                       ->system;
  const Program program = LowerMnist(options);
  EXPECT_EQ(program.system.nodes[FindGraph(program, "forward_backward")->node].name, "gpu_0");
  EXPECT_EQ(program.system.nodes[FindStage(program, "load_train")->node].name, "cpu_0");
  ASSERT_NE(FindStage(program, "transfer_train"), nullptr);
  EXPECT_EQ(FindPipeline(program, "train")->links.size(), 4u);
  const auto again = ParseText(PrintProgram(program));
  ASSERT_TRUE(again);
  EXPECT_EQ(PrintProgram(*again), PrintProgram(program));
}

TEST(L1LowerTest, OverridesTakeThePlaceOfThePhases) {
  LowerOptions options = MnistOptions();
  options.epochs = 3;
  options.seed = 9;
  Program program = LowerMnist(options);
  ASSERT_EQ(program.schedule.phases.size(), 1u);
  EXPECT_EQ(program.schedule.phases[0].epochs, 3);
  EXPECT_EQ(program.schedule.seed, 9u);
  // The decay ends with the run: 3 * 469 - 1000 steps after the warm-up.
  EXPECT_NE(PrintProgram(program).find("tensor_div(step_sub, 407.0)"), std::string::npos);
  options.epochs.reset();
  options.steps = 1500;
  program = LowerMnist(options);
  EXPECT_EQ(program.schedule.phases[0].epochs, 0);
  EXPECT_EQ(program.schedule.phases[0].steps, 1500);
  EXPECT_NE(PrintProgram(program).find("tensor_div(step_sub, 500.0)"), std::string::npos);
}

TEST(L1LowerTest, WithoutTestDataNothingIsEvaluated) {
  LowerOptions options = MnistOptions();
  options.data["mnist"].rows.erase("test");
  const Program program = LowerMnist(options);
  EXPECT_EQ(FindGraph(program, "evaluate"), nullptr);
  EXPECT_EQ(program.pipelines.size(), 1u);
  EXPECT_EQ(program.schedule.phases[0].eval, "");
  ASSERT_TRUE(ParseText(PrintProgram(program)));
}

TEST(L1LowerTest, FailuresNameTheirCause) {
  const l2::Module module = ParseL2(ReadText(kMnist));
  LowerOptions options = MnistOptions();
  options.data.clear();
  EXPECT_EQ(FailureText(Lower(module, options)),
            "error[resource-bound]: NoCandidates: nothing is known about the files of data "
            "'mnist'\nfix: say where they are: --data mnist=DIR\n");
  options = MnistOptions();
  options.data["mnist"].rows["train"] = 0;
  EXPECT_NE(FailureText(Lower(module, options)).find("has 0 rows to train on"), std::string::npos);
  options.data["mnist"].rows["train"] = 100;
  EXPECT_EQ(FailureText(Lower(module, options)),
            "error[resource-bound]: NoCandidates: data 'mnist' has 100 rows to train on, and a "
            "batch has 128\nfix: write batch: 100 or less\n");
  EXPECT_NE(FailureText(Lower(ParseL2(MnistText("epoch_shuffle(batch: 128, drop_last: false)",
                                                "distributed_shard(shards: 2, method: "
                                                "epoch_shuffle(batch: 64))")),
                              options))
                .find("fix: write batch: 50 or less"),
            std::string::npos);
  options = MnistOptions();
  EXPECT_NE(
      FailureText(Lower(ParseL2(MnistText("linear(256, 10)",
                                          "\n        #[l1::on(gpu_1)]\n        linear(256, 10)")),
                        MnistOptions()))
          .find("'#[l1::on(gpu_1)]' on classify.infer.linear3: the system has no compute node "
                "'gpu_1'\nfix: it has cpu_0"),
      std::string::npos);
  options = MnistOptions();
  options.epochs = int64_t{1} << 30;
  options.data["mnist"].rows["train"] = int64_t{1} << 50;
  EXPECT_NE(FailureText(Lower(module, options))
                .find("the phases together make more than 1099511627776 steps on the "
                      "1125899906842624 rows of data 'mnist'\nfix: train for fewer epochs"),
            std::string::npos);
  options = MnistOptions();
  options.system.nodes[1].capacity = 1000;
  EXPECT_NE(FailureText(Lower(module, options)).find("more than any memory"), std::string::npos);
}

TEST(L1LowerTest, DecisionsAreOnRecord) {
  const auto result = Lower(ParseL2(ReadText(kMnist)), MnistOptions());
  ASSERT_TRUE(result.ok());
  const auto& explanation = result.explanation;
  EXPECT_EQ(explanation.lowering, "l2->l1");
  EXPECT_EQ(explanation.report.stop_reason, "saturated");
  for (const char* id : {"l1/node.load", "l1/node.forward_backward", "l1/node.model_state"}) {
    ASSERT_NE(explanation.Find(id), nullptr) << id;
    EXPECT_EQ(explanation.Find(id)->chosen, "cpu_0");
  }
  const search::Decision* depth = explanation.Find("l1/pipeline_depth");
  ASSERT_NE(depth, nullptr);
  EXPECT_EQ(depth->chosen, "2");
  ASSERT_EQ(depth->losers.size(), 1u);
  EXPECT_EQ(depth->losers[0].label, "1");
  EXPECT_GT(depth->losers[0].difference[0].value, 0);

  LowerOptions options = MnistOptions();
  options.search.forced["l1/pipeline_depth"] = "1";
  EXPECT_EQ(LowerMnist(options).schedule.pipeline_depth, 1);
}

}  // namespace
}  // namespace l3c::l1
