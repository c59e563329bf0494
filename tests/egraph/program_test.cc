// The text language: what programs mean, and what is said about bad ones.
#include <gtest/gtest.h>

#include <string>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

// Loads `text` into a fresh graph; gives "ok" or the error.
std::string Outcome(std::string_view text) {
  EGraph graph;
  return LoadProgram(graph, text, "t.egg").status.ToString();
}

std::string Output(std::string_view text) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, text, "t.egg");
  return result.ok() ? result.output() : result.status.ToString();
}

TEST(Program, RewritesUntilSaturated) {
  EXPECT_EQ(Output(R"(
    (datatype Math (Num i64) (Add Math Math) (Mul Math Math))
    (rewrite (Add a b) (Add b a))
    (rewrite (Mul a (Num 1)) a)
    (rewrite (Add (Num a) (Num b)) (Num (+ a b)))
    (let e (Mul (Add (Num 2) (Num 3)) (Num 1)))
    (run-schedule (saturate (run)))
    (check (= e (Num 5)))
    (fail (check (= e (Num 6))))
    (extract e)
  )"),
            "(Num 5)\n");
}

TEST(Program, DatalogPathsAndShortestLengths) {
  EXPECT_EQ(Output(R"(
    (relation edge (i64 i64))
    (function dist (i64 i64) i64 :merge (min old new))
    (rule ((edge a b)) ((set (dist a b) 1)))
    (rule ((= n (dist a b)) (edge b c)) ((set (dist a c) (+ n 1))))
    (edge 1 2) (edge 2 3) (edge 3 4) (edge 1 4) (edge 4 1)
    (run-schedule (saturate (run)))
    (check (= (dist 1 4) 1))
    (check (= (dist 2 1) 3))
    (check (= (dist 3 3) 4))
    (print-size dist)
  )"),
            "16\n");
}

TEST(Program, CongruenceFollowsUnions) {
  EXPECT_EQ(Outcome(R"(
    (datatype T (A) (B) (F T) (G T T))
    (let fa (F (F (A))))
    (let fb (F (F (B))))
    (let g1 (G (F (A)) (B)))
    (let g2 (G (F (B)) (A)))
    (fail (check (= fa fb)))
    (union (A) (B))
    (check (= fa fb))
    (check (= g1 g2))
    (print-size F)
  )"),
            "ok");
}

TEST(Program, ConditionsAndPrimitives) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64) (Half T) (Double T))
    (rewrite (Half (N x)) (N (/ x 2)) :when ((= (% x 2) 0) (> x 0)))
    (rewrite (Double (N x)) (N (select (bool-< x 100) (* x 2) x)))
    (let a (Half (N 8)))
    (let b (Half (N 7)))
    (let c (Double (N 21)))
    (let d (Double (N 210)))
    (run 3)
    (check (= a (N 4)))
    (fail (check (= b (N 3))))
    (check (= c (N 42)))
    (check (= d (N 210)))
    (extract (to-f64 (+ 1 2)))
    (extract (+ "a" "b"))
    (extract (log2 1024))
    (check (!= 1 2) (guard (or false true)))
    (fail (check (!= a (N 4))))
  )"),
            "3.0\n\"ab\"\n10\n");
}

TEST(Program, AnalysesAreFunctionsWithMerge) {
  EXPECT_EQ(Outcome(R"(
    (datatype T (N i64) (Add T T))
    (function lo (T) i64 :merge (max old new))
    (function hi (T) i64 :merge (min old new))
    (rule ((= e (N x))) ((set (lo e) x) (set (hi e) x)))
    (rule ((= e (Add a b)) (= x (lo a)) (= y (lo b))) ((set (lo e) (+ x y))))
    (rule ((= e (Add a b)) (= x (hi a)) (= y (hi b))) ((set (hi e) (+ x y))))
    (rule ((= x (lo e)) (= x (hi e))) ((union e (N x))))
    (let e (Add (N 1) (Add (N 2) (N 3))))
    (run-schedule (saturate (run)))
    (check (= e (N 6)))
  )"),
            "ok");
}

TEST(Program, FactsThatMustAgreeNameBothRules) {
  EXPECT_EQ(Outcome(R"((datatype T (A))
(function size (T) i64 :no-merge)
(rule ((= e (A))) ((set (size e) 1)) :name "one")
(rule ((= e (A))) ((set (size e) 2)) :name "two")
(A)
(run 1))"),
            "t.egg:6:1: error: conflicting values for (size (A)): 1 from rule 'one' (t.egg:3), 2 "
            "from rule 'two' (t.egg:4)");
}

TEST(Program, SchedulesAndRulesets) {
  EXPECT_EQ(Output(R"(
    (relation n (i64))
    (ruleset up) (ruleset down)
    (rule ((n x) (< x 5)) ((n (+ x 1))) :ruleset up)
    (rule ((n x) (> x -3)) ((n (- x 1))) :ruleset down)
    (n 0)
    (run up 2) (print-size n)
    (run-schedule (saturate (seq (run up) (run down)))) (print-size n)
    (run up 100 :until (n 3))
  )"),
            "3\n9\n");
}

TEST(Program, UntilStopsALoop) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, R"(
    (relation n (i64))
    (rule ((n x)) ((n (+ x 1))))
    (n 0)
    (run 1000 :until (n 10)))",
                                           "t.egg");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.reports[0].stop, StopReason::kUntil);
  EXPECT_EQ(result.reports[0].iterations, 10u);
}

TEST(Program, SubsumedAndDeletedRowsMatchNoMore) {
  EXPECT_EQ(Output(R"(
    (datatype T (A) (B) (F T) (Slow T :cost 100) (Fast T :cost 1))
    (rewrite (Slow x) (Fast x) :subsume)
    (rewrite (Slow x) (F x) :ruleset late)
  )"),
            "t.egg:4:38: error: unknown ruleset 'late'");
  EXPECT_EQ(Output(R"(
    (ruleset late)
    (datatype T (A) (F T) (Slow T) (Fast T :cost 50))
    (relation seen (T))
    (rewrite (Slow x) (Fast x) :subsume)
    (rule ((Slow x)) ((seen x)) :ruleset late)
    (let s (Slow (A)))
    (run 1)
    (run late 1)
    (print-size seen)
    (extract s)
    (seen (A))
    (delete (seen (A)))
    (print-size seen)
  )"),
            "0\n(Fast (A))\n0\n");
}

TEST(Program, NumericsClassesAreDisabledAboveTheSetting) {
  constexpr std::string_view kText = R"(
    (datatype T (A) (B) (C) (D))
    (rewrite (A) (B) :numerics exact)
    (rewrite (A) (C) :numerics reassoc)
    (rewrite (A) (D) :numerics fast)
    (A)
    (run 2)
    (print-size B) (print-size C) (print-size D))";
  for (auto [numerics, expected] :
       {std::pair(Numerics::kExact, "1\n0\n0\n"), std::pair(Numerics::kReassoc, "1\n1\n0\n"),
        std::pair(Numerics::kFast, "1\n1\n1\n")}) {
    EGraph graph;
    graph.set_numerics(numerics);
    EXPECT_EQ(LoadProgram(graph, kText, "t.egg").output(), expected);
  }
}

TEST(Program, PushAndPop) {
  EXPECT_EQ(Output(R"(
    (datatype T (A) (B) (C))
    (A)
    (push) (B) (union (A) (B)) (check (= (A) (B))) (print-size B) (pop)
    (print-size B)
  )"),
            "1\n0\n");
}

TEST(Program, GlobalsInRulesFollowTheirClass) {
  EXPECT_EQ(Outcome(R"(
    (datatype T (A) (B) (C) (F T))
    (let a (A))
    (rule ((= x (F a))) ((union x (C))))
    (F (B))
    (union (B) (A))
    (run 1)
    (check (= (F a) (C)))
    (check (= a (B)))
    (fail (check (= a (C))))
  )"),
            "ok");
}

TEST(Program, BirewriteGoesBothWays) {
  EXPECT_EQ(Outcome(R"(
    (datatype T (X) (Y) (Add T T) (Neg T))
    (birewrite (Neg (Add a b)) (Add (Neg a) (Neg b)))
    (let l (Neg (Add (X) (Y))))
    (let r (Add (Neg (Y)) (Neg (X))))
    (run 2)
    (check (= l (Add (Neg (X)) (Neg (Y)))))
    (check (= r (Neg (Add (Y) (X)))))
  )"),
            "ok");
}

TEST(Program, PrimitivesFromCpp) {
  EGraph graph;
  graph.RegisterPrimitive("area", {kI64, kI64}, kI64,
                          [](EGraph& g, std::span<const Value> a) -> std::optional<Value> {
                            return g.I64(g.AsI64(a[0]) * g.AsI64(a[1]));
                          });
  const ProgramResult result = LoadProgram(graph, R"(
    (datatype T (Rect i64 i64) (Square i64))
    (function size (T) i64 :no-merge)
    (rule ((= e (Rect a b))) ((set (size e) (area a b))))
    (let r (Rect 3 4))
    (run 1)
    (check (= (size r) 12)))",
                                           "t.egg");
  EXPECT_TRUE(result.ok()) << result.status.ToString();
}

TEST(Program, ErrorsHaveTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"(foo)", "t.egg:1:1: error: unknown command or function 'foo'"},
      {"(sort A)\n(sort A)", "t.egg:2:7: error: sort 'A' is declared already"},
      {"(datatype A (B C))", "t.egg:1:16: error: unknown sort 'C'"},
      {"(datatype A (B A))\n(rewrite (B x y) x)",
       "t.egg:2:10: error: 'B' takes 1 arguments, 2 given"},
      {"(datatype A (B A))\n(rewrite (B x) y)", "t.egg:2:16: error: unknown variable 'y'"},
      {"(datatype A (B i64))\n(rewrite (B \"s\") (B 1))",
       "t.egg:2:13: error: expected i64, found String"},
      {"(datatype A (B i64))\n(rewrite (B x) (B 1.5))",
       "t.egg:2:19: error: expected i64, found f64"},
      {"(datatype A (B i64))\n(rewrite (B x) x)", "t.egg:2:16: error: expected A, found i64"},
      {"(datatype A (B i64))\n(rule ((= x (+ y 1))) ())",
       "t.egg:2:11: error: variable 'x' is bound by no premise"},
      {"(datatype A (B i64))\n(rule ((B x) (< x \"a\")) ())",
       "t.egg:2:14: error: no primitive '<' fits (< i64 String)"},
      {"(datatype A (B i64))\n(rule ((B x) (bool-< x 3)) ())",
       "t.egg:2:14: error: a bool as a premise always holds; write (guard ...) or (= true ...)"},
      {"(function f (i64) i64)", "t.egg:1:1: error: a function needs :merge or :no-merge"},
      {"(function f (i64) i64 :merge (+ old 1.0))",
       "t.egg:1:30: error: no primitive '+' fits (+ i64 f64)"},
      {"(function f (i64) i64 :no-merge)\n(rule ((= y (f x))) ((set (f (f x)) y)))",
       "t.egg:2:30: error: the value of function 'f' cannot be read by an action; read it in a "
       "premise"},
      {"(relation r (i64))\n(rule ((r x)) ((r (+ x 1))) :numerics loose)",
       "t.egg:2:39: error: expected exact, reassoc or fast"},
      {"(datatype A (B))\n(rewrite (B) (B) :whence ((B)))",
       "t.egg:2:18: error: unknown option ':whence'; did you mean ':when'?"},
      {"(run-schedule (forever (run)))",
       "t.egg:1:15: error: unknown schedule 'forever'; run, run-with, let-scheduler, repeat, "
       "saturate and seq are known"},
      {"(let x (+ 9223372036854775807 1))",
       "t.egg:1:1: error: primitive '+' gives nothing in an action of the input"},
      {"(let x 99999999999999999999)", "t.egg:1:8: error: integer out of the range of i64"},
      {"(panic \"stop\")", "t.egg:1:1: error: panic by the input: stop"},
      {"(check (= 1 \"a\"))", "t.egg:1:13: error: expected i64, found String"},
      {"(datatype A (B))\n(rule ((= x (B)) (= 2.5 x)) ())",
       "t.egg:2:25: error: expected f64, found A"},
      {"(check (= 1 2))", "t.egg:1:8: error: check failed: no match for '(= 1 2)'"},
      {"(fail (check (= 1 1)))", "t.egg:1:1: error: '(check (= 1 1))' was expected to fail"},
      {"(sort V (List i64))",
       "t.egg:1:9: error: unknown container 'List'; Vec, Set, MultiSet, Map, Pair "
       "and UnstableFn are known"},
      {"(pop)", "t.egg:1:1: error: pop without a push"},
      {"(datatype A (B))\n  (A", "t.egg:2:3: error: '(' without a ')'"},
      {")", "t.egg:1:1: error: ')' without a '('"},
      {"(let s \"abc", "t.egg:1:8: error: string without an end"},
      {"(relation r (i64))\n(r 1 2)", "t.egg:2:1: error: 'r' takes 1 arguments, 2 given"},
      {"(relation r (i64))\n(union 1 2)", "t.egg:2:1: error: values of i64 cannot be united"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Outcome(text), expected) << text;
}

TEST(Program, ErrorsHaveAKindAndMarkAWord) {
  struct Case {
    std::string text;
    ErrorKind kind;
    std::string marked;
  };
  const Case cases[] = {
      {"(foo)", ErrorKind::kSyntax, "("},
      {"(sort A)\n(sort A)", ErrorKind::kSafety, "A"},
      {"(relation r (i64 Strin))", ErrorKind::kSafety, "Strin"},
      {"(relation r (i64))\n(rule ((r x)) ((r y)))", ErrorKind::kSafety, "y"},
      {"(relation r (i64))\n(r \"a b\")", ErrorKind::kSafety, "\"a b\""},
      {"(let s \"abc", ErrorKind::kSyntax, "\"abc"},
      {"(sort A) )", ErrorKind::kSyntax, ")"},
      {"(check (= 1 2))", ErrorKind::kConsistency, "("},
      {"(panic \"stop\")", ErrorKind::kConsistency, "("},
      {"(pop)", ErrorKind::kConsistency, "("},
      {"(include \"none.egg\")", ErrorKind::kEnvironment, "\"none.egg\""},
      {std::string(2000, '('), ErrorKind::kResourceBound, "("},
      {"(push 100001)", ErrorKind::kResourceBound, "("},
  };
  for (const Case& c : cases) {
    EGraph graph;
    const ProgramStatus status = LoadProgram(graph, c.text, "t.egg").status;
    EXPECT_EQ(ErrorKindName(status.kind), ErrorKindName(c.kind)) << status.ToString();
    EXPECT_EQ(c.text.substr(status.begin, status.end - status.begin), c.marked) << c.text;
    EXPECT_EQ(status.included, nullptr);
  }
}

TEST(Program, HostileInputIsRefused) {
  // Larger than any program.
  EXPECT_EQ(Outcome(std::string(10 << 20, 'x')),
            "t.egg:1:1: error: the text is larger than 8388608 bytes");
  // Garbage of the largest size that is read at all.
  std::string garbage(8 << 20, '\0');
  uint32_t state = 1;
  for (char& c : garbage) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  EXPECT_NE(Outcome(garbage), "ok");
  for (char& c : garbage) c = "()ab 1\"\n;:"[static_cast<unsigned char>(c) % 10];
  EXPECT_NE(Outcome(garbage), "ok");
  EXPECT_EQ(Outcome(std::string(10000, '(')),
            "t.egg:1:1001: error: parentheses nested deeper than 1000");
  std::string deep = "(datatype T (A) (F T))\n(let x ";
  for (int i = 0; i < 990; ++i) deep += "(F ";
  deep += "(A)";
  deep += std::string(990, ')');
  EXPECT_EQ(Outcome(deep + ")\n(extract x)"), "ok");
  std::string wide = "(relation r (i64))\n(rule (";
  for (int i = 0; i < 600; ++i) wide += "(r " + std::to_string(i) + ")";
  EXPECT_EQ(Outcome(wide + ") ())"), "t.egg:2:3398: error: more than 500 premises in one query");
}

}  // namespace
}  // namespace l3c::egraph
