// Terms that nest very deep, through everything that takes terms: no recursion by depth, and time
// in proportion to it.
//
//   deep_test [--depth=N]     20,000 unless given; in the nightly preset a million
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "egraph/explain.h"
#include "egraph/extract/dag.h"
#include "egraph/extract/exact.h"
#include "egraph/extract/extract.h"
#include "egraph/extract/plain.h"
#include "egraph/program.h"
#include "egraph/proof_checker.h"
#include "egraph/proof_text.h"
#include "egraph/serialize.h"
#include "egraph/why_not.h"

namespace l3c::egraph {
namespace {

size_t g_depth = 20'000;

constexpr const char* kLanguage =
    "(datatype T (A) (B) (F T)) (relation top (T)) (rewrite (F (B)) (A) :name \"back\")";

// (F (F … (A))), by calls.
Value Chain(EGraph& graph, Value inner) {
  const FunctionId f = graph.FindFunction("F");
  for (size_t i = 0; i < g_depth; ++i) inner = graph.Add(f, {inner});
  return inner;
}

class Deep : public testing::Test {
 protected:
  void Build(bool proofs) {
    if (proofs) graph.EnableProofs({.redundant = true});
    ASSERT_TRUE(LoadProgram(graph, kLanguage, "deep.egg").ok());
    a = graph.Add(graph.FindFunction("A"), {});
    b = graph.Add(graph.FindFunction("B"), {});
    over_a = Chain(graph, a);
    over_b = Chain(graph, b);
  }
  EGraph graph;
  Value a, b, over_a, over_b;
};

TEST_F(Deep, TermsAreExtractedPrintedAndWritten) {
  Build(false);
  graph.Insert(graph.FindFunction("top"), {over_a});
  graph.SetGlobal("over", {graph.ClassSort(over_a), over_a});
  const std::string term = FormatValue(graph, graph.ClassSort(over_a), over_a);
  EXPECT_EQ(term.size(), 4 * g_depth + 3);
  ProgramResult result = LoadProgram(graph, "(extract over) (print-function top)", "print.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(result.printed[0].text, term + "\n");
  // Reading it back is refused where it nests deeper than a text may.
  result = LoadProgram(graph, "(extract " + term + ")", "back.egg");
  EXPECT_NE(result.status.message.find("nested deeper"), std::string::npos)
      << result.status.ToString().substr(0, 200);

  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const std::vector<ClassRef> roots{view.ClassOf(over_a)};
  const SerializedGraph serialized = Serialize(extractor, roots);
  const SerializedResult read = ReadSerialized(WriteSerialized(serialized), "deep.json");
  ASSERT_TRUE(read.ok()) << read.error;
  const SerializedProblem problem = ProblemOf(read.graph);
  const auto cost = static_cast<double>(g_depth + 1);
  EXPECT_EQ(PlainTree(problem.graph, problem.prices, problem.roots).dag_cost, cost);
  EXPECT_EQ(SolveExact(problem.graph, problem.prices, problem.roots).cost, cost);
  EXPECT_GT(WriteDot(read.graph).size(), g_depth);
}

TEST_F(Deep, EqualitiesAreProvenCheckedAndPrinted) {
  Build(true);
  graph.Union(a, b);
  ASSERT_TRUE(graph.Rebuild());
  ASSERT_EQ(graph.Find(over_a), graph.Find(over_b));
  EXPECT_EQ(graph.LiveRows(graph.FindFunction("F")), g_depth);
  Explainer explainer(graph);
  const std::optional<Proof> proof = explainer.Explain(over_a, over_b);
  ASSERT_TRUE(proof.has_value()) << explainer.gap();
  EXPECT_GE(proof->steps.size(), g_depth);
  EXPECT_EQ(ProofChecker(graph).CheckEqual(*proof, over_a, over_b), std::nullopt);
  EXPECT_GT(PrintProof(graph, *proof).size(), 10 * g_depth);
  EXPECT_GT(ProofJson(graph, *proof).size(), 10 * g_depth);
}

TEST_F(Deep, ProofsAndWhyNotKeepTheTimeLimit) {
  Build(true);
  const TimeLimit none_left(TimeKind::kWall, 0);
  EXPECT_FALSE(ExplainWhyNot(graph, over_a, over_b).equal);
  EXPECT_FALSE(ExplainWhyNot(graph, over_a, over_b, 0).searched_all);
  graph.Union(a, b);
  ASSERT_TRUE(graph.Rebuild());
  Explainer late(graph, none_left);
  EXPECT_FALSE(late.Explain(over_a, over_b).has_value());
  EXPECT_NE(late.gap().find("time limit"), std::string::npos) << late.gap();
  const std::optional<Proof> proof = Explainer(graph).Explain(over_a, over_b);
  ASSERT_TRUE(proof.has_value());
  EXPECT_EQ(ProofChecker(graph, none_left).Check(*proof), "the time limit passed");
  ProgramOptions options;
  options.budget.max_seconds = 0;
  graph.SetGlobal("over-a", {graph.ClassSort(over_a), over_a});
  graph.SetGlobal("over-b", {graph.ClassSort(over_b), over_b});
  const ProgramResult result =
      LoadProgram(graph, "(prove (= over-a over-b))", "prove.egg", options);
  EXPECT_NE(result.status.message.find("time limit passed"), std::string::npos)
      << result.status.ToString();
}

}  // namespace
}  // namespace l3c::egraph

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with("--depth=")) {
      std::cerr << "usage: deep_test [--depth=N]\n";
      return 2;
    }
    l3c::egraph::g_depth = std::strtoull(argument.c_str() + 8, nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
