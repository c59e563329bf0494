// A program outside of the tree, built against the installed package.
#include <iostream>

#include "egraph/egraph.h"
#include "egraph/extract/extract.h"
#include "egraph/program.h"
#include "egraph/view.h"

int main() {
  using namespace l3c::egraph;
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, R"(
    (datatype Math (Num i64) (Mul Math Math) (Shl Math Math))
    (rewrite (Mul x (Num 2)) (Shl x (Num 1)))
    (let root (Mul (Num 7) (Num 2)))
    (run 1)
    (check (= root (Shl (Num 7) (Num 1)))))",
                                           "consumer.egg");
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const ClassRef roots[] = {view.ClassOf(graph.Find(graph.FindGlobal("root")->value))};
  const Extraction exact = extractor.Exact(roots);
  std::cout << result.status.ToString() << ", cost " << exact.dag_cost << "\n";
  return result.ok() && exact.dag_cost == 3 ? 0 : 1;
}
