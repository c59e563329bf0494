#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/extract/plain.h"
#include "egraph/program.h"
#include "egraph/serialize.h"
#include "egraph/view.h"

namespace l3c::egraph {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Whatever a program has made can be written and read.
void RequireFile(const EGraph& graph) {
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const SerializedGraph graph_file = Serialize(extractor, {});
  const SerializedResult read = ReadSerialized(WriteSerialized(graph_file), "written.json");
  Require(read.ok(), "a graph that was written can be read");
  Require(read.graph.nodes.size() == graph_file.nodes.size(), "no e-node is lost");
  Require(read.graph.classes.size() == graph_file.classes.size(), "no class is lost");
}

std::string Outcome(std::string_view text) {
  ProgramOptions options;
  options.max_bytes = 1 << 16;
  options.budget.max_nodes = 300;
  options.budget.max_matches = 3000;
  options.budget.max_iterations = 20;
  options.budget.max_bytes = 32 << 20;
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, text, "fuzz.egg", options);
  Require(result.ok() || result.status.line != 0, "an error has a place");
  Require(result.ok() || !result.status.message.empty(), "an error says something");
  if (result.ok()) RequireFile(graph);
  return result.status.ToString() + result.output();
}

}  // namespace

void FuzzLanguage(std::string_view text) {
  Require(Outcome(text) == Outcome(text), "the same program ends alike");
}

void FuzzJson(std::string_view text) {
  // E-nodes looked at by the local search.
  constexpr uint64_t kWork = 10000;
  const SerializedResult read = ReadSerialized(text, "fuzz.json");
  if (!read.ok()) {
    Require(read.graph.nodes.empty(), "what is refused leaves nothing");
    return;
  }
  const std::string written = WriteSerialized(read.graph);
  const SerializedResult again = ReadSerialized(written, "again.json");
  Require(again.ok(), "what is written can be read");
  Require(WriteSerialized(again.graph) == written, "reading changes nothing");
  Require(!WriteDot(read.graph).empty(), "it can be drawn");
  const SerializedProblem problem = ProblemOf(read.graph);
  const PlainExtraction tree = PlainTree(problem.graph, problem.prices, problem.roots);
  const PlainExtraction greedy =
      PlainGreedyDag(problem.graph, problem.prices, problem.roots, kWork);
  Require(tree.feasible == greedy.feasible, "both extractors find a term, or none");
  if (tree.feasible && tree.dag_cost < 1e15 && tree.dag_cost > -1e15) {
    Require(greedy.dag_cost <=
                tree.dag_cost + 1e-6 * (1 + (tree.dag_cost < 0 ? -tree.dag_cost : tree.dag_cost)),
            "sharing is never dearer than a tree");
  }
}

}  // namespace l3c::egraph
