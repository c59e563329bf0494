// E-graphs to files and back.
#include "egraph/serialize.h"

#include <gtest/gtest.h>

#include <string>

#include "egraph/extract/exact.h"
#include "egraph/extract/plain.h"
#include "egraph/program.h"

namespace l3c::egraph {
namespace {

constexpr char kShared[] = R"({
  "nodes": {
    "r0": {"op": "root", "children": ["a0", "b0"], "eclass": "r", "cost": 1},
    "a0": {"op": "own a", "children": [], "eclass": "a", "cost": 4},
    "a1": {"op": "by s", "children": ["s0"], "eclass": "a", "cost": 1},
    "b0": {"op": "own b", "eclass": "b", "cost": 4},
    "b1": {"op": "by s", "children": ["s0"], "eclass": "b"},
    "b2": {"op": "itself", "children": ["b0"], "eclass": "b", "cost": 0},
    "b3": {"op": "gone", "eclass": "b", "cost": 0, "subsumed": true},
    "s0": {"op": "shared", "children": [], "eclass": "s", "cost": 5},
    "x0": {"op": "never", "children": [], "eclass": "s", "cost": null}
  },
  "root_eclasses": ["r"],
  "class_data": {"r": {"type": "Root"}, "nobody": {"type": "T"}}
})";

TEST(Serialize, ReadsAndExtracts) {
  const SerializedResult read = ReadSerialized(kShared, "shared.json");
  ASSERT_TRUE(read.ok()) << read.error;
  EXPECT_EQ(read.graph.nodes.size(), 9u);
  EXPECT_EQ(read.graph.classes.size(), 4u);
  const SerializedProblem problem = ProblemOf(read.graph);
  // Apart 1 + 4 + 4, together 1 + 1 + 1 + 5.
  const PlainExtraction tree = PlainTree(problem.graph, problem.prices, problem.roots);
  EXPECT_EQ(tree.dag_cost, 9);
  EXPECT_EQ(tree.tree_cost, 9);
  const PlainExtraction greedy =
      PlainGreedyDag(problem.graph, problem.prices, problem.roots, 1000000);
  EXPECT_EQ(greedy.dag_cost, 8);
  EXPECT_EQ(greedy.tree_cost, 13);
  const ExactSolution exact = SolveExact(problem.graph, problem.prices, problem.roots);
  EXPECT_EQ(exact.cost, 8);
}

TEST(Serialize, WritesWhatItReads) {
  const SerializedResult read = ReadSerialized(kShared, "shared.json");
  ASSERT_TRUE(read.ok());
  const std::string written = WriteSerialized(read.graph);
  const SerializedResult again = ReadSerialized(written, "again.json");
  ASSERT_TRUE(again.ok()) << again.error;
  EXPECT_EQ(WriteSerialized(again.graph), written);
  EXPECT_NE(written.find("\"cost\": null"), std::string::npos);
  EXPECT_NE(written.find("\"r\": {\"type\": \"Root\"}"), std::string::npos);
}

TEST(Serialize, AViewHasTheSameOptimum) {
  EGraph graph;
  const ProgramResult loaded = LoadProgram(graph, R"(
    (sort M)
    (constructor Num (i64) M :cost 1) (constructor Add (M M) M :cost 3)
    (constructor Shift (M i64) M :cost 2)
    (let x (Add (Num 1) (Num 1))) (union x (Shift (Num 1) 1)) (let y (Add x x))
  )",
                                           "t.egg");
  ASSERT_TRUE(loaded.ok()) << loaded.status.ToString();
  graph.Rebuild();
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const std::vector<ClassRef> roots{view.ClassOf(graph.FindGlobal("y")->value)};
  const double expected = extractor.Exact(roots).dag_cost;
  EXPECT_EQ(expected, 6);
  const SerializedResult read =
      ReadSerialized(WriteSerialized(Serialize(extractor, roots)), "view.json");
  ASSERT_TRUE(read.ok()) << read.error;
  const SerializedProblem problem = ProblemOf(read.graph);
  EXPECT_EQ(SolveExact(problem.graph, problem.prices, problem.roots).cost, expected);
  const std::string dot = WriteDot(read.graph, std::vector<uint32_t>{0});
  EXPECT_NE(dot.find("digraph egraph {"), std::string::npos);
  EXPECT_NE(dot.find("style=filled"), std::string::npos);
}

// From text to JSON and back: what is cheapest stays so, also through containers.
TEST(Serialize, ContainersBecomeENodes) {
  EGraph graph;
  const ProgramResult loaded = LoadProgram(graph, R"(
    (datatype* (T (Leaf i64) (Of V) (Dear T :cost 9)) (sort V (Vec T)) (sort W (Vec V)))
    (constructor Deep (W String) T :cost 2)
    (let $x (Deep (vec-of (vec-of (Leaf 1) (Leaf 2)) (vec-empty)) "s"))
    (let $y (Dear $x)) (union (Leaf 2) (Dear (Leaf 7)))
    (extract $y)
    (push) (extract $x) (pop))",
                                           "t.egg");
  ASSERT_TRUE(loaded.ok()) << loaded.status.ToString();
  ASSERT_EQ(loaded.extracted.size(), 1u);
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const std::vector<ClassRef> roots{view.ClassOf(loaded.extracted[0])};
  const std::string json = WriteSerialized(Serialize(extractor, roots));
  const SerializedResult read = ReadSerialized(json, "view.json");
  ASSERT_TRUE(read.ok()) << read.error;
  EXPECT_EQ(WriteSerialized(read.graph).size(), json.size());
  const SerializedProblem problem = ProblemOf(read.graph);
  // Dear and Deep, and two leaves; literals and containers cost nothing here.
  const ExactSolution exact = SolveExact(problem.graph, problem.prices, problem.roots);
  EXPECT_EQ(exact.cost, 9 + 2 + 1 + 1);
  size_t vectors = 0;
  for (const SerializedNode& node : read.graph.nodes) vectors += node.op == "vec-of";
  EXPECT_EQ(vectors, 3u);
}

// A chain of 10^5 e-nodes (10^6 by hand: l3c egraph extract), and a class that holds only itself.
TEST(Serialize, DeepAndCyclicGraphs) {
  constexpr uint32_t kDepth = 100000;
  SerializedGraph graph;
  for (uint32_t i = 0; i <= kDepth; ++i) {
    SerializedNode node;
    node.id = std::to_string(i);
    node.op = "S";
    node.cls = i;
    if (i != kDepth) node.children = {i + 1};
    graph.nodes.push_back(node);
    graph.classes.push_back({"c" + std::to_string(i), ""});
  }
  graph.roots = {0};
  const SerializedResult read = ReadSerialized(WriteSerialized(graph), "deep.json");
  ASSERT_TRUE(read.ok()) << read.error;
  SerializedProblem problem = ProblemOf(read.graph);
  EXPECT_EQ(PlainTree(problem.graph, problem.prices, problem.roots).dag_cost, kDepth + 1);
  EXPECT_EQ(SolveExact(problem.graph, problem.prices, problem.roots).cost, kDepth + 1);
  graph.nodes.back().children = {0};
  problem = ProblemOf(graph);
  EXPECT_FALSE(PlainTree(problem.graph, problem.prices, problem.roots).feasible);
  EXPECT_FALSE(SolveExact(problem.graph, problem.prices, problem.roots).feasible);
}

TEST(Serialize, BadFilesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "parse error"},
      {"{\"nodes\": {", "parse error at line 1"},
      {"[]", "expected an object with an object \"nodes\""},
      {R"({"nodes": {"a": 1}})", "node \"a\": expected an object"},
      {R"({"nodes": {"a": {"op": "x"}}})", "node \"a\": expected a string \"eclass\""},
      {R"({"nodes": {"a": {"op": "x", "eclass": "c", "cost": "1"}}})", "expected a number"},
      {R"({"nodes": {"a": {"op": "x", "eclass": "c", "children": ["b"]}}})",
       "child \"b\" is no node"},
      {R"({"nodes": {}, "root_eclasses": ["c"]})", "class \"c\" has no node"},
      {R"({"nodes": {"a": {"op": "\ud800", "eclass": "c"}}})", "parse error"},
  };
  for (const auto& [text, message] : cases) {
    const SerializedResult read = ReadSerialized(text, "bad.json");
    EXPECT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error.rfind("bad.json: error: ", 0), 0u) << read.error;
    EXPECT_NE(read.error.find(message), std::string::npos) << read.error;
  }
  const std::string deep(1000000, '[');
  EXPECT_FALSE(ReadSerialized(deep, "deep.json").ok());
  EXPECT_FALSE(ReadSerialized(R"({"nodes": )" + deep, "deep.json").ok());
}

}  // namespace
}  // namespace l3c::egraph
