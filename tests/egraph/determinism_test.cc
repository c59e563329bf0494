// The same graph, bit by bit, for any number of threads and every time: rows, their order, ids,
// reports, the serialized graph.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "egraph/extract/extract.h"
#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/serialize.h"
#include "egraph/view.h"

namespace l3c::egraph {
namespace {

std::string ReadWorkload(const std::string& file) {
  std::ifstream in(std::string(L3C_SOURCE_DIR "/tests/egraph/workloads/") + file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Case {
  const char* name;
  std::string text;
};

std::vector<Case> Cases() {
  std::string arcs;
  for (int i = 0; i < 90; ++i) {
    const std::string from = std::to_string(i);
    arcs += "(arc " + from + " " + std::to_string((i * 7 + 1) % 90) + ") ";
    arcs += "(arc " + from + " " + std::to_string((i * 11 + 5) % 90) + ")\n";
  }
  return {
      {"calculus", ReadWorkload("math.egg") + R"(
        (let root (Diff (Sym "x") (Sub (Pow (Sym "x") (Num 3.0))
                                       (Mul (Num 7.0) (Pow (Sym "x") (Num 2.0))))))
        (run-schedule (repeat 13 (seq (saturate analysis) (run calculus))))
        (extract root 3) (print-size))"},
      {"evaluation", ReadWorkload("lambda.egg") + R"(
        (let root (App (Fix (Named "f") (Lam (Named "n")
                 (If (Eq (Var (Named "n")) (Num 0)) (Num 0)
                     (App (Var (Named "f")) (Add (Var (Named "n")) (Num -1)))))) (Num 3)))
        (run-schedule (repeat 14 (seq (saturate analysis) (run evaluate))))
        (extract root) (print-function free 50))"},
      {"paths", R"(
        (datatype Node (At i64))
        (relation arc (i64 i64)) (relation reach (i64 i64))
        (function distance (i64 i64) i64 :merge (min old new))
        (rule ((arc a b)) ((reach a b) (set (distance a b) 1) (At a)))
        (rule ((reach a b) (arc b c)) ((reach a c)))
        (rule ((= d (distance a b)) (arc b c)) ((set (distance a c) (+ d 1))))
        (rule ((= 9 (distance a b)) (reach b a)) ((union (At a) (At b))))
        (let root (At 0)))" +
                    arcs + "(run 100) (print-size) (print-function distance 500)"},
      {"sums", R"(
        (datatype T (Leaf i64) (Add T T) (Mul T T))
        (rewrite (Add a b) (Add b a))
        (rewrite (Add a (Add b c)) (Add (Add a b) c))
        (rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)))
        (let root (Mul (Leaf 0) (Add (Leaf 1) (Add (Leaf 2) (Add (Leaf 3) (Add (Leaf 4)
                  (Add (Leaf 5) (Add (Leaf 6) (Add (Leaf 7) (Add (Leaf 8) (Leaf 9)))))))))))
        (run 6) (extract root) (print-size))"},
  };
}

// All that a run can give.
std::string Everything(const Case& c, uint32_t threads) {
  EGraph graph;
  ProgramOptions options;
  options.budget.threads = threads;
  const ProgramResult result = LoadProgram(graph, c.text, "case.egg", options);
  EXPECT_TRUE(result.ok()) << result.status.ToString();
  std::string all = result.output();
  for (const RunReport& report : result.reports) {
    all += std::string(StopReasonName(report.stop)) + " " + std::to_string(report.iterations) +
           " " + std::to_string(report.matches) + " " + std::to_string(report.applied) + " " +
           std::to_string(report.bytes) + "\n";
    for (const RuleReport& rule : report.rules) {
      all += std::to_string(rule.rule.index) + ":" + std::to_string(rule.matches) + " ";
    }
  }
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    graph.ForEachRow(FunctionId{f}, [&](const auto& row) {
      for (uint32_t i = 0; i < row.size(); ++i) all += std::to_string(row.arg(i).bits) + " ";
      all += std::to_string(row.output().bits) + "\n";
    });
  }
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const ClassRef roots[] = {view.ClassOf(graph.Find(graph.FindGlobal("root")->value))};
  return all + WriteSerialized(Serialize(extractor, roots));
}

TEST(Determinism, OneTwoAndFourThreadsTwentyTimes) {
  for (const Case& c : Cases()) {
    const std::string first = Everything(c, 1);
    EXPECT_GT(first.size(), 10'000u) << c.name;
    for (int run = 1; run < 20; ++run) {
      const uint32_t threads = uint32_t{1} << (run % 3);
      // Not EXPECT_EQ, which would print them.
      EXPECT_TRUE(Everything(c, threads) == first) << c.name << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace l3c::egraph
