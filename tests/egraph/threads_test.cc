// The same bits for any number of threads. Run under the thread sanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "egraph/program.h"
#include "egraph/run.h"
#include "egraph/worker_pool.h"

namespace l3c::egraph {
namespace {

// Rules with joins of two and three atoms, with comparisons (which may run on any thread), with a
// primitive that interns (which may not), one without variables and one with a merge.
std::string Text(int size) {
  std::string text = R"(
    (datatype T (Leaf i64) (Add T T) (Mul T T) (Named String T))
    (function least (T) i64 :merge (min old new))
    (relation near (i64 i64))
    (relation found ())
    (rewrite (Add x y) (Add y x))
    (rewrite (Add x (Add y z)) (Add (Add x y) z))
    (rewrite (Add (Mul x y) (Mul x z)) (Mul x (Add y z)))
    (rule ((= t (Leaf n))) ((set (least t) n)))
    (rule ((= t (Add x y)) (= (least x) n) (= (least y) m) (< n m)) ((set (least t) n)))
    (rule ((near a b) (near b c) (< a c)) ((near a c)))
    (rule ((near a b) (= s (to-string (* a b))) (< b 60)) ((Named s (Leaf a))))
    (rule ((near a b) (Add x y)) ((found)))
  )";
  for (int i = 0; i < size; ++i) {
    text += "(near " + std::to_string(i % 97) + " " + std::to_string(i * 7 % 101) + ")";
    text += "(Add (Mul (Leaf " + std::to_string(i % 40) + ") (Leaf " + std::to_string(i) +
            ")) (Mul (Leaf " + std::to_string(i % 40) + ") (Leaf " + std::to_string(i + 1) + ")))";
  }
  return text;
}

// Everything that a graph holds, rows in order.
std::string Dump(const EGraph& graph) {
  std::string text;
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    const FunctionId id{f};
    text += graph.function(id).name + "\n";
    graph.ForEachRow(id, [&](const Row& row) {
      for (uint32_t i = 0; i < row.size(); ++i) text += std::to_string(row.arg(i).bits) + " ";
      text += std::to_string(row.output().bits) + " " + std::to_string(row.rule().index) + "\n";
    });
  }
  return text;
}

std::string Report(const RunReport& report) {
  std::string text = std::string(StopReasonName(report.stop)) + " " +
                     std::to_string(report.iterations) + " " + std::to_string(report.matches) +
                     " " + std::to_string(report.applied) + "\n";
  for (const RuleReport& rule : report.rules) {
    text += std::to_string(rule.rule.index) + " " + std::to_string(rule.matches) + " " +
            std::to_string(rule.applied) + " " + std::to_string(rule.rows) + " " +
            std::to_string(rule.work) + "\n";
  }
  return text;
}

struct Result {
  std::string graph;
  std::string report;
  uint64_t rows;
  uint64_t bytes;
};

Result RunText(const std::string& text, uint32_t threads, uint64_t steps, Budget budget) {
  EGraph graph;
  EXPECT_TRUE(LoadProgram(graph, text, "t.egg").ok());
  budget.threads = threads;
  const RunReport report =
      RunSchedule(graph, Schedule::Repeat(steps, Schedule::Run(kDefaultRuleset)), budget);
  return {Dump(graph), Report(report), report.rows, report.bytes};
}

TEST(Threads, TheSameBits) {
  const std::string text = Text(1500);
  const Result one = RunText(text, 1, 3, {});
  for (const uint32_t threads : {2u, 4u, 7u}) {
    const Result more = RunText(text, threads, 3, {});
    EXPECT_EQ(more.report, one.report) << threads << " threads";
    EXPECT_TRUE(more.graph == one.graph) << threads << " threads";
  }
}

TEST(Threads, TheSameStop) {
  const std::string text = Text(1500);
  for (const uint64_t limit : {20'000u, 60'000u}) {
    Budget matches;
    matches.max_matches = limit;
    Budget bytes;
    bytes.max_bytes = 40 * limit;
    Budget work;
    work.max_work = 4 * limit;
    for (const Budget& budget : {matches, bytes, work}) {
      const Result one = RunText(text, 1, 10, budget);
      EXPECT_NE(one.report.find("limit"), std::string::npos) << one.report;
      for (const uint32_t threads : {2u, 4u}) {
        const Result more = RunText(text, threads, 10, budget);
        EXPECT_EQ(more.report, one.report) << threads << " threads";
        EXPECT_TRUE(more.graph == one.graph) << threads << " threads";
      }
    }
  }
}

// Enough rows and matches for large blocks (apply_block.h), with unions that make most rows stale.
std::string LargeText() {
  std::string text = R"(
    (datatype T (Leaf i64) (Add T T) (Neg T))
    (relation item (i64))
    (relation seen (T T))
    (rule ((item a) (item b)) ((Add (Leaf a) (Leaf b))) :name "fill")
    (rewrite (Add x y) (Add y x) :name "commute")
    (rewrite (Add x x) (Neg x) :name "double")
    (rule ((Add x y)) ((seen y x) (seen x x)) :name "see")
    (rule ((= s (Add (Leaf a) y)) (= t (Add (Leaf b) y)) (= b (+ a 1)) (< a 9)) ((union s t)))
  )";
  for (int i = 0; i < 290; ++i) text += "(item " + std::to_string(i) + ")";
  return text;
}

TEST(Threads, TheSameBitsOfLargeBlocks) {
  const std::string text = LargeText();
  const Result one = RunText(text, 1, 3, {});
  EXPECT_NE(one.report.find(" 8"), std::string::npos) << one.report;
  for (const uint32_t threads : {2u, 3u}) {
    const Result more = RunText(text, threads, 3, {});
    EXPECT_EQ(more.report, one.report) << threads << " threads";
    EXPECT_TRUE(more.graph == one.graph) << threads << " threads";
  }
}

TEST(Threads, LargeBlocksStopWithinTheirBudgets) {
  const std::string text = LargeText();
  Budget nodes;
  nodes.max_nodes = 120'000;
  Budget bytes;
  bytes.max_bytes = 7'000'000;
  for (const Budget& budget : {nodes, bytes}) {
    const Result one = RunText(text, 1, 3, budget);
    const bool by_nodes = budget.max_nodes == nodes.max_nodes;
    EXPECT_NE(one.report.find(by_nodes ? "node limit" : "byte limit"), std::string::npos)
        << one.report;
    EXPECT_LE(one.rows, nodes.max_nodes + 2);
    EXPECT_LE(one.bytes, budget.max_bytes + budget.max_bytes / 10);
    const Result more = RunText(text, 2, 3, budget);
    EXPECT_EQ(more.report, one.report);
    EXPECT_TRUE(more.graph == one.graph);
  }
}

TEST(Threads, AClockStopsThemAll) {
  Budget budget;
  budget.max_seconds = 0;
  const Result result = RunText(Text(1500), 4, 3, budget);
  EXPECT_NE(result.report.find("time limit"), std::string::npos) << result.report;
}

}  // namespace
}  // namespace l3c::egraph
