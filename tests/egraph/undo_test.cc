// Push and pop: after a pop everything is bitwise what it was, and goes on as it would have.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "egraph/program.h"
#include "tests/egraph/math_workload.h"
#include "tests/egraph/random_program.h"

namespace l3c::egraph {
namespace {

// All that can be told of a graph: declarations, rows in order with dead ones, classes, values.
std::string Picture(EGraph& graph) {
  std::ostringstream out;
  for (uint32_t s = 0; s < graph.sort_count(); ++s) out << graph.sort(SortId{s}).name << ' ';
  for (uint32_t r = 0; r < graph.ruleset_count(); ++r) {
    out << graph.ruleset_name(RulesetId{r}) << graph.RulesetMembers(RulesetId{r}).size() << ' ';
  }
  for (uint32_t r = 0; r < graph.rule_count(); ++r) out << graph.DescribeRule(RuleId{r}) << '\n';
  out << graph.primitives().size() << '\n';
  uint32_t classes = 0;
  for (uint32_t f = 0; f < graph.function_count(); ++f) {
    const Function& function = graph.function(FunctionId{f});
    const Table& table = graph.table(FunctionId{f});
    out << function.name << function.hidden << ' ' << table.row_count() << '\n';
    for (uint32_t row = 0; row < table.row_count(); ++row) {
      for (uint32_t c = 0; c <= table.arguments(); ++c) out << table.Get(row, c) << ' ';
      out << table.IsLive(row) << table.IsSubsumed(row) << table.Provenance(row).index << '\n';
      if (!graph.sort(function.output).is_equality) continue;
      classes = std::max(classes, table.Output(row) + 1);
    }
    for (uint64_t clock = 0; clock < 60; ++clock) out << table.RowsAt(clock) << ' ';
  }
  for (uint32_t c = 0; c < classes; ++c) out << graph.Find(Value{c}).bits << ' ';
  out << '\n' << graph.RowCount() << ' ' << graph.ClassCount() << ' ' << graph.unions().size();
  for (const UnionRecord& u : graph.unions()) {
    out << ' ' << u.a.bits << '=' << u.b.bits << ':' << u.rule.index;
  }
  out << '\n' << graph.NeedsRebuild() << graph.failure().value_or("fine") << '\n';
  return out.str();
}

// What a program prints from here on and what the graph is then.
std::string Outcome(EGraph& graph, const std::string& text) {
  const ProgramResult result = LoadProgram(graph, text, "more.egg");
  return result.output() + result.status.ToString() + Picture(graph);
}

constexpr char kShapes[] = R"(
(sort Shape) (sort Shapes (Vec Shape)) (sort Names (Set String))
(constructor Dot (i64) Shape) (constructor Row (Shapes) Shape) (constructor Pair (Shape Shape) Shape)
(function size (Shape) i64 :merge (max old new))
(function label (Shape) Names :merge (set-union old new))
(relation seen (Shape))
(ruleset grow)
(rule ((= s (Pair a b))) ((union s (Pair b a)) (seen s)) :ruleset grow)
(rule ((= s (Row v))) ((set (size s) (vec-length v))) :ruleset grow)
(let dots (Row (vec-of (Dot 1) (Dot 2))))
(let pair (Pair (Dot 1) dots))
(set (label pair) (set-of "pair" "two"))
(run grow 2)
)";

constexpr char kBetween[] = R"(
(union (Dot 1) (Dot 2))
(constructor Ring (Shape) Shape)
(sort More (Map String Shape))
(function held (Shape) More :no-merge)
(let ring (Ring pair))
(set (label pair) (set-of "ring" "large"))
(set (held ring) (map-insert (map-empty) "inside" dots))
(ruleset late) (unstable-combined-ruleset all grow late)
(rule ((= s (Ring a))) ((union s a) (Dot 3000000000)) :ruleset late)
(run all 3)
(subsume (Dot 2)) (delete (seen pair))
)";

constexpr char kAfter[] = R"(
(let ring (Dot 4000000000))
(set (label ring) (set-of "small"))
(run grow 3)
(extract pair) (print-function label 20) (print-size)
)";

TEST(Undo, TextGoesOnAsIfNothingHadHappened) {
  EGraph plain;
  ASSERT_TRUE(LoadProgram(plain, kShapes, "shapes.egg").ok());
  EGraph graph;
  const ProgramResult result =
      LoadProgram(graph, std::string(kShapes) + "(push)" + kBetween + "(pop)", "shapes.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(Picture(graph), Picture(plain));
  EXPECT_EQ(Outcome(graph, kAfter), Outcome(plain, kAfter));
}

TEST(Undo, LevelsNest) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, kShapes, "shapes.egg").ok());
  const std::string first = Picture(graph);
  graph.Push();
  ASSERT_TRUE(LoadProgram(graph, "(union (Dot 1) (Dot 7)) (let x (Pair pair pair))", "a.egg").ok());
  const std::string second = Picture(graph);
  for (int i = 0; i < 3; ++i) {
    graph.Push();
    EXPECT_EQ(graph.level_count(), 2u);
    const ProgramResult result = LoadProgram(graph, kBetween, "between.egg");
    ASSERT_TRUE(result.ok()) << result.status.ToString();
    EXPECT_NE(Picture(graph), second);
    graph.Pop();
    EXPECT_EQ(Picture(graph), second);
  }
  graph.Pop();
  EXPECT_EQ(Picture(graph), first);
  EXPECT_EQ(graph.level_count(), 0u);
}

TEST(Undo, ADroppedLevelKeepsWhatHappened) {
  EGraph graph, plain;
  for (EGraph* g : {&graph, &plain}) ASSERT_TRUE(LoadProgram(*g, kShapes, "shapes.egg").ok());
  const std::string first = Picture(graph);
  graph.Push();
  graph.Push();
  for (EGraph* g : {&graph, &plain}) ASSERT_TRUE(LoadProgram(*g, kBetween, "between.egg").ok());
  graph.DropLevel();
  EXPECT_EQ(Picture(graph), Picture(plain));
  EXPECT_EQ(Outcome(graph, "(run grow 2)"), Outcome(plain, "(run grow 2)"));
  graph.Pop();
  EXPECT_EQ(Picture(graph), first);
}

TEST(Undo, AFailureIsTakenBack) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, "(function f () i64 :no-merge) (set (f) 1)", "f.egg").ok());
  const std::string before = Picture(graph);
  graph.Push();
  EXPECT_FALSE(LoadProgram(graph, "(set (f) 2)", "f.egg").ok());
  EXPECT_TRUE(graph.failure().has_value());
  graph.Pop();
  EXPECT_EQ(Picture(graph), before);
  EXPECT_TRUE(LoadProgram(graph, "(check (= (f) 1))", "f.egg").ok());
}

TEST(Undo, UnionsThatWaitForARebuildWaitAgain) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, "(datatype T (A) (B) (F T))", "t.egg").ok());
  const FunctionId f = graph.FindFunction("F");
  const Value a = graph.Add(graph.FindFunction("A"), {});
  const Value b = graph.Add(graph.FindFunction("B"), {});
  const Value fa = graph.Add(f, {a}), fb = graph.Add(f, {b});
  graph.Union(a, b);
  const std::string before = Picture(graph);
  graph.Push();
  ASSERT_TRUE(graph.Rebuild());
  EXPECT_EQ(graph.Find(fa), graph.Find(fb));
  graph.Pop();
  EXPECT_EQ(Picture(graph), before);
  EXPECT_NE(graph.Find(fa), graph.Find(fb));
  ASSERT_TRUE(graph.Rebuild());
  EXPECT_EQ(graph.Find(fa), graph.Find(fb));
}

// Steps that compact tables and grow every array, far beyond what was there.
TEST(Undo, AMillionTimesLarger) {
  EGraph graph;
  for (const char* text :
       {math_workload::kLanguage, math_workload::kRules, math_workload::kTerms}) {
    ASSERT_TRUE(LoadProgram(graph, text, "math.egg").ok());
  }
  RunSchedule(graph, Schedule::Repeat(5, Schedule::Run(kDefaultRuleset)));
  const std::string before = Picture(graph);
  EGraph plain = graph;
  const size_t bytes = graph.Bytes();
  graph.Push();
  RunSchedule(graph, Schedule::Repeat(4, Schedule::Run(kDefaultRuleset)));
  EXPECT_EQ(graph.NodeCount(), math_workload::kNodes[9]);
  graph.Pop();
  EXPECT_EQ(Picture(graph), before);
  EXPECT_LE(graph.Bytes(), bytes + bytes / 8);
  RunSchedule(graph, Schedule::Repeat(3, Schedule::Run(kDefaultRuleset)));
  RunSchedule(plain, Schedule::Repeat(3, Schedule::Run(kDefaultRuleset)));
  EXPECT_EQ(graph.NodeCount(), math_workload::kNodes[8]);
  EXPECT_EQ(Picture(graph), Picture(plain));
}

// A plan is kept while it serves. One made anew at this place would begin with the other table, and
// number the new terms in another order.
TEST(Undo, MatchesComeInTheOrderInWhichTheyWouldHave) {
  std::string first =
      "(datatype T (P i64 i64)) (relation r (i64 i64)) (relation s (i64 i64))"
      "(rule ((r x y) (s y z)) ((P x z)))";
  std::string more;
  for (int i = 0; i < 10; ++i) {
    first += "(r " + std::to_string(i) + " " + std::to_string(9 - i) + ")";
    first += "(s " + std::to_string((i * 7) % 10) + " " + std::to_string(i + 20) + ")";
  }
  first += "(s 3 40) (s 4 41) (run 1) (check (r 1 8) (s 3 40))";
  for (int i = 10; i < 30; ++i) {
    more += "(r " + std::to_string(i) + " " + std::to_string(i % 10) + ")";
  }
  more += "(s 8 50) (s 2 51) (run 1)";
  EGraph plain, graph, fresh;
  for (EGraph* g : {&plain, &graph}) ASSERT_TRUE(LoadProgram(*g, first, "p.egg").ok());
  const size_t bytes = graph.Bytes();
  graph.Push();
  ASSERT_TRUE(LoadProgram(graph, more + "(r 1 7) (P 100 100) (run 2)", "q.egg").ok());
  graph.Pop();
  EXPECT_EQ(graph.Bytes(), bytes);
  EGraph copy = graph;
  for (EGraph* g : {&plain, &graph, &copy}) ASSERT_TRUE(LoadProgram(*g, more, "q.egg").ok());
  EXPECT_EQ(Picture(graph), Picture(plain));
  EXPECT_EQ(Picture(copy), Picture(plain));
  EXPECT_EQ(graph.Bytes(), plain.Bytes());
}

// Every pool that a program can fill, and the log.
TEST(Undo, BytesAreWhatTheyWere) {
  for (const bool proofs : {false, true}) {
    EGraph graph;
    if (proofs) graph.EnableProofs({.redundant = true});
    ASSERT_TRUE(LoadProgram(graph, kShapes, "shapes.egg").ok());
    const size_t bytes = graph.Bytes();
    graph.Push();
    std::string much = kBetween;
    for (int i = 0; i < 300; ++i) {
      const std::string n = std::to_string(5000000000 + i);
      much += "(Dot " + n + ") (set (label (Dot " + n + ")) (set-of \"" + n + "\" \"two\"))";
      much += "(Row (vec-of (Dot " + n + ") pair)) (let f" + n + " (to-f64 " + n + "))";
    }
    ASSERT_TRUE(LoadProgram(graph, much + "(run all 2)", "between.egg").ok());
    EXPECT_GT(graph.Bytes(), 2 * bytes);
    graph.Pop();
    EXPECT_EQ(graph.Bytes(), bytes) << proofs;
  }
}

// The log of a level goes with it: its records name classes that are gone.
TEST(Undo, ALogThatBeganLaterEndsWithItsLevel) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, "(datatype T (A) (B) (F T)) (rewrite (F x) x)", "t.egg").ok());
  graph.Push();
  ASSERT_TRUE(LoadProgram(graph, "(F (A)) (run 1) (prove (= (F (A)) (A)))", "t.egg").ok());
  graph.Push();
  ASSERT_TRUE(LoadProgram(graph, "(union (A) (B))", "t.egg").ok());
  graph.Pop();
  EXPECT_TRUE(LoadProgram(graph, "(prove (= (F (A)) (A)))", "t.egg").ok());
  graph.Pop();
  EXPECT_EQ(graph.proof_log(), nullptr);
  const ProgramResult result =
      LoadProgram(graph, "(F (F (B))) (run 2) (prove (= (F (B)) (B)))", "t.egg");
  EXPECT_EQ(result.status.ToString(), "ok");
}

class RandomUndo : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomUndo, GoesOnAsIfNothingHadHappened) {
  RandomProgram program(GetParam());
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, program.text(), "random.egg").ok());
  Budget budget;
  budget.max_iterations = 4;
  for (int round = 0; round < 6; ++round) {
    RunSchedule(graph, program.NextSchedule(graph), budget);
    EGraph plain = graph;
    const std::string before = Picture(graph);
    graph.Push();
    for (int i = 0; i < 2; ++i) RunSchedule(graph, program.NextSchedule(graph), budget);
    graph.Pop();
    ASSERT_EQ(Picture(graph), before);
    const Schedule next = program.NextSchedule(graph);
    RunSchedule(graph, next, budget);
    RunSchedule(plain, next, budget);
    ASSERT_EQ(Picture(graph), Picture(plain));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomUndo, testing::Range(uint64_t{1}, uint64_t{25}));

}  // namespace
}  // namespace l3c::egraph
