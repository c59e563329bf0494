// From a method to a placed program.
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

// L3C_UPDATE_GOLDEN=1 writes the file anew; review the difference.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = "tests/layers/l1/golden/" + name;
  if (std::getenv("L3C_UPDATE_GOLDEN") != nullptr) {
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

}  // namespace
}  // namespace l3c::l1
