// The workloads that egg publishes: every equality that it finds within its limits is found within
// them and has a proof that the checker accepts, and what is not equal is not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/extract.h"
#include "egraph/view.h"
#include "tests/egraph/workloads/case.h"

namespace l3c::egraph {
namespace {

void RunCase(const Workload& workload, const WorkloadCase& c) {
  EGraph graph;
  graph.EnableProofs();
  const WorkloadOutcome outcome = RunWorkload(graph, workload, c);
  for (size_t i = 0; i < c.goals.size(); ++i) {
    EXPECT_EQ(outcome.found[i], c.provable)
        << c.goals[i] << "\nstopped after " << outcome.steps << " steps, " << outcome.nodes
        << " e-nodes: " << outcome.stop;
  }
  const size_t steps = CheckProofs(graph, c, outcome);
  EXPECT_EQ(steps > 0, c.provable);
}

// The fact holds, and the checker accepts its proof.
bool IsProven(EGraph& graph, const std::string& fact) {
  return Holds(graph, fact) && CheckProof(graph, fact) > 0;
}

std::string CaseName(const ::testing::TestParamInfo<WorkloadCase>& info) { return info.param.name; }

// --- math

class Math : public ::testing::TestWithParam<WorkloadCase> {};

TEST_P(Math, FindsWhatHolds) { RunCase({"math.egg", "analysis", "calculus"}, GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Egg, Math,
    ::testing::Values(
        WorkloadCase{
            "Fail", R"((Add (Sym "x") (Sym "y")))", {R"((Div (Sym "x") (Sym "y")))"}, false},
        WorkloadCase{"SimplifyAdd",
                     R"((Add (Sym "x") (Add (Sym "x") (Add (Sym "x") (Sym "x")))))",
                     {R"((Mul (Num 4.0) (Sym "x")))"}},
        WorkloadCase{"Powers",
                     R"((Mul (Pow (Num 2.0) (Sym "x")) (Pow (Num 2.0) (Sym "y"))))",
                     {R"((Pow (Num 2.0) (Add (Sym "x") (Sym "y"))))"}},
        WorkloadCase{"SimplifyConst",
                     R"((Add (Num 1.0) (Sub (Sym "a") (Mul (Sub (Num 2.0) (Num 1.0)) (Sym "a")))))",
                     {"(Num 1.0)"}},
        WorkloadCase{"SimplifyRoot",
                     R"((Div (Num 1.0)
                          (Sub (Div (Add (Num 1.0) (Sqrt (Sym "five"))) (Num 2.0))
                               (Div (Sub (Num 1.0) (Sqrt (Sym "five"))) (Num 2.0)))))",
                     {R"((Div (Num 1.0) (Sqrt (Sym "five"))))"},
                     true,
                     30,
                     75'000},
        WorkloadCase{"SimplifyFactor",
                     R"((Mul (Add (Sym "x") (Num 3.0)) (Add (Sym "x") (Num 1.0))))",
                     {R"((Add (Add (Mul (Sym "x") (Sym "x")) (Mul (Num 4.0) (Sym "x")))
                              (Num 3.0)))"}},
        WorkloadCase{"DiffSame", R"((Diff (Sym "x") (Sym "x")))", {"(Num 1.0)"}},
        WorkloadCase{"DiffDifferent", R"((Diff (Sym "x") (Sym "y")))", {"(Num 0.0)"}},
        WorkloadCase{"DiffSimple1",
                     R"((Diff (Sym "x") (Add (Num 1.0) (Mul (Num 2.0) (Sym "x")))))",
                     {"(Num 2.0)"}},
        WorkloadCase{"DiffSimple2",
                     R"((Diff (Sym "x") (Add (Num 1.0) (Mul (Sym "y") (Sym "x")))))",
                     {R"((Sym "y"))"}},
        WorkloadCase{
            "DiffLn", R"((Diff (Sym "x") (Ln (Sym "x"))))", {R"((Div (Num 1.0) (Sym "x")))"}},
        WorkloadCase{"DiffPowerSimple",
                     R"((Diff (Sym "x") (Pow (Sym "x") (Num 3.0))))",
                     {R"((Mul (Num 3.0) (Pow (Sym "x") (Num 2.0))))"}},
        WorkloadCase{"DiffPowerHarder",
                     R"((Diff (Sym "x") (Sub (Pow (Sym "x") (Num 3.0))
                                             (Mul (Num 7.0) (Pow (Sym "x") (Num 2.0))))))",
                     {R"((Mul (Sym "x") (Sub (Mul (Num 3.0) (Sym "x")) (Num 14.0))))"},
                     true,
                     60,
                     100'000,
                     true},
        WorkloadCase{"IntegOne", R"((Integral (Num 1.0) (Sym "x")))", {R"((Sym "x"))"}},
        WorkloadCase{"IntegSin", R"((Integral (Cos (Sym "x")) (Sym "x")))", {R"((Sin (Sym "x")))"}},
        WorkloadCase{"IntegX",
                     R"((Integral (Pow (Sym "x") (Num 1.0)) (Sym "x")))",
                     {R"((Div (Pow (Sym "x") (Num 2.0)) (Num 2.0)))"}},
        WorkloadCase{"IntegPart1",
                     R"((Integral (Mul (Sym "x") (Cos (Sym "x"))) (Sym "x")))",
                     {R"((Add (Mul (Sym "x") (Sin (Sym "x"))) (Cos (Sym "x"))))"}},
        WorkloadCase{"IntegPart2",
                     R"((Integral (Mul (Cos (Sym "x")) (Sym "x")) (Sym "x")))",
                     {R"((Add (Mul (Sym "x") (Sin (Sym "x"))) (Cos (Sym "x"))))"}},
        WorkloadCase{"IntegPart3",
                     R"((Integral (Ln (Sym "x")) (Sym "x")))",
                     {R"((Sub (Mul (Sym "x") (Ln (Sym "x"))) (Sym "x")))"}}),
    CaseName);

// --- lambda

class Lambda : public ::testing::TestWithParam<WorkloadCase> {};

TEST_P(Lambda, FindsWhatHolds) { RunCase({"lambda.egg", "analysis", "evaluate"}, GetParam()); }

// Shorter ways to write: variables, let, application of named functions.
std::string Name(const std::string& x) { return "(Named \"" + x + "\")"; }
std::string Var(const std::string& x) { return "(Var " + Name(x) + ")"; }
std::string Num(int n) { return "(Num " + std::to_string(n) + ")"; }
std::string Lam(const std::string& x, const std::string& body) {
  return "(Lam " + Name(x) + " " + body + ")";
}
std::string Let(const std::string& x, const std::string& e, const std::string& body) {
  return "(Let " + Name(x) + " " + e + " " + body + ")";
}
std::string Fix(const std::string& x, const std::string& e) {
  return "(Fix " + Name(x) + " " + e + ")";
}
std::string Op(const std::string& op, const std::string& a, const std::string& b) {
  return "(" + op + " " + a + " " + b + ")";
}
std::string Add(const std::string& a, const std::string& b) { return Op("Add", a, b); }
std::string Eq(const std::string& a, const std::string& b) { return Op("Eq", a, b); }
std::string App(const std::string& f, const std::string& e) { return Op("App", f, e); }
std::string If(const std::string& c, const std::string& a, const std::string& b) {
  return "(If " + c + " " + a + " " + b + ")";
}

// compose = λf.λg.λx. f (g x) and add1 = λy. y + 1 in `body`.
std::string WithCompose(const std::string& body) {
  const std::string compose = Lam("f", Lam("g", Lam("x", App(Var("f"), App(Var("g"), Var("x"))))));
  return Let("compose", compose, body);
}
std::string WithAdd1(const std::string& body) {
  return Let("add1", Lam("y", Add(Var("y"), Num(1))), body);
}
std::string Composed(const std::string& f, const std::string& g) {
  return App(App(Var("compose"), f), g);
}
std::string Add1Composed(int times) {
  std::string term = Var("add1");
  for (int i = 1; i < times; ++i) term = Composed(Var("add1"), term);
  return term;
}

INSTANTIATE_TEST_SUITE_P(
    Egg, Lambda,
    ::testing::Values(
        WorkloadCase{
            "Under", Lam("x", Add(Num(4), App(Lam("y", Var("y")), Num(4)))), {Lam("x", Num(8))}},
        WorkloadCase{"IfElim",
                     If(Eq(Var("a"), Var("b")), Add(Var("a"), Var("a")), Add(Var("a"), Var("b"))),
                     {Add(Var("a"), Var("b"))}},
        WorkloadCase{
            "LetSimple", Let("x", Num(0), Let("y", Num(1), Add(Var("x"), Var("y")))), {Num(1)}},
        WorkloadCase{"Capture", Let("x", Num(1), Lam("x", Var("x"))), {Lam("x", Num(1))}, false},
        WorkloadCase{"CaptureFree",
                     Let("y", Add(Var("x"), Var("x")), Lam("x", Var("y"))),
                     {Lam("x", Add(Var("x"), Var("x")))},
                     false},
        WorkloadCase{"ClosureNotSeven",
                     Let("five", Num(5),
                         Let("add-five", Lam("x", Add(Var("x"), Var("five"))),
                             Let("five", Num(6), App(Var("add-five"), Num(1))))),
                     {Num(7)},
                     false},
        WorkloadCase{"ClosureIsSix",
                     Let("five", Num(5),
                         Let("add-five", Lam("x", Add(Var("x"), Var("five"))),
                             Let("five", Num(6), App(Var("add-five"), Num(1))))),
                     {Num(6)}},
        WorkloadCase{"Compose",
                     WithCompose(WithAdd1(Add1Composed(2))),
                     {"(Lam x (Add (Num 1) (App (Lam y (Add (Num 1) (Var y))) (Var x))))",
                      "(Lam x (Add (Var x) (Num 2)))"},
                     true,
                     30,
                     10'000,
                     false,
                     {"x", "y"},
                     "Name"},
        WorkloadCase{"IfSimple", If(Eq(Num(1), Num(1)), Num(7), Num(9)), {Num(7)}},
        WorkloadCase{"ComposeMany",
                     WithCompose(WithAdd1(Add1Composed(7))),
                     {"(Lam x (Add (Var x) (Num 7)))"},
                     true,
                     30,
                     10'000,
                     false,
                     {"x"},
                     "Name"},
        WorkloadCase{
            "FunctionRepeat",
            WithCompose(Let(
                "repeat",
                Fix("repeat",
                    Lam("fun", Lam("n", If(Eq(Var("n"), Num(0)), Lam("i", Var("i")),
                                           Composed(Var("fun"), App(App(Var("repeat"), Var("fun")),
                                                                    Add(Var("n"), Num(-1)))))))),
                WithAdd1(App(App(Var("repeat"), Var("add1")), Num(2))))),
            {"(Lam x (Add (Var x) (Num 2)))"},
            true,
            60,
            150'000,
            false,
            {"x"},
            "Name"},
        WorkloadCase{"If",
                     Let("zeroone", Lam("x", If(Eq(Var("x"), Num(0)), Num(0), Num(1))),
                         Add(App(Var("zeroone"), Num(0)), App(Var("zeroone"), Num(10)))),
                     {Num(1)}},
        WorkloadCase{"Fib",
                     Let("fib",
                         Fix("fib", Lam("n", If(Eq(Var("n"), Num(0)), Num(0),
                                                If(Eq(Var("n"), Num(1)), Num(1),
                                                   Add(App(Var("fib"), Add(Var("n"), Num(-1))),
                                                       App(Var("fib"), Add(Var("n"), Num(-2)))))))),
                         App(Var("fib"), Num(4))),
                     {Num(3)},
                     true,
                     60,
                     500'000}),
    CaseName);

// --- prop: the start is taken to be true; the rulesets given prove the rest of it.

struct PropCase {
  std::string name;
  std::string start;
  std::string rulesets;
  std::vector<std::string> goals;
  std::vector<std::string> not_implied;
};

void PrintTo(const PropCase& c, std::ostream* out) { *out << c.name; }

class Prop : public ::testing::TestWithParam<PropCase> {};

TEST_P(Prop, ProvesWhatFollows) {
  const PropCase& c = GetParam();
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "prop.egg");
  Load(graph, "(unstable-combined-ruleset proof fold " + c.rulesets + ")");
  Load(graph, "(let start " + c.start + ") (union start (Const true))");
  WorkloadCase run;
  run.goals = c.goals;
  run.max_steps = 20;
  run.max_nodes = 5'000;
  const WorkloadOutcome outcome = RunLoaded(graph, {"prop.egg", "", "proof"}, run);
  for (size_t i = 0; i < c.goals.size(); ++i) {
    EXPECT_TRUE(outcome.found[i]) << c.goals[i] << ": " << outcome.stop;
  }
  EXPECT_GT(CheckProofs(graph, run, outcome), c.goals.size());
  for (const std::string& fact : c.not_implied) {
    EXPECT_FALSE(Holds(graph, "(= start " + fact + ")")) << fact;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Egg, Prop,
    ::testing::Values(
        PropCase{"Contrapositive",
                 R"((Implies (Sym "x") (Sym "y")))",
                 "implication to-double-negation or-commutes",
                 {R"((Implies (Sym "x") (Sym "y")))", R"((Or (Not (Sym "x")) (Sym "y")))",
                  R"((Or (Not (Sym "x")) (Not (Not (Sym "y")))))",
                  R"((Or (Not (Not (Sym "y"))) (Not (Sym "x"))))",
                  R"((Implies (Not (Sym "y")) (Not (Sym "x"))))"},
                 {R"((Sym "x"))", R"((Sym "y"))", R"((Implies (Sym "y") (Sym "x")))"}},
        PropCase{
            "Chain",
            R"((And (Implies (Sym "x") (Sym "y")) (Implies (Sym "y") (Sym "z"))))",
            "implication to-double-negation or-commutes and-commutes cases",
            {R"((And (Implies (Sym "x") (Sym "y")) (Implies (Sym "y") (Sym "z"))))",
             R"((And (Implies (Not (Sym "y")) (Not (Sym "x"))) (Implies (Sym "y") (Sym "z"))))",
             R"((And (Implies (Sym "y") (Sym "z")) (Implies (Not (Sym "y")) (Not (Sym "x")))))",
             R"((Or (Sym "z") (Not (Sym "x"))))", R"((Or (Not (Sym "x")) (Sym "z")))",
             R"((Implies (Sym "x") (Sym "z")))"},
            {R"((Sym "x"))", R"((Sym "z"))", R"((Implies (Sym "z") (Sym "x")))"}}),
    [](const ::testing::TestParamInfo<PropCase>& c) { return c.param.name; });

TEST(PropBeyond, FoldsConstants) {
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "prop.egg");
  Load(graph, R"(
    (let start (Or (And (Const false) (Const true)) (And (Const true) (Const false))))
    (run-schedule (saturate (run fold))))");
  EXPECT_TRUE(IsProven(graph, "(= start (Const false))"));
  EXPECT_FALSE(Holds(graph, "(= start (Const true))"));
}

TEST(PropBeyond, LawsOfLogic) {
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "prop.egg");
  Load(graph, R"(
    (unstable-combined-ruleset all fold implication double-negation or-commutes and-commutes
                               or-associates distribute laws)
    (let a (Sym "a")) (let b (Sym "b"))
    (let middle (Or (Not a) a))
    (let twice (Not (Not a)))
    (let absorbed (Or (Const true) b))
    (let kept (And (Const true) b))
    (let spread (And a (Or b (Not a))))
    (run all 4))");
  EXPECT_TRUE(IsProven(graph, "(= middle (Const true))"));
  EXPECT_TRUE(IsProven(graph, "(= twice a)"));
  EXPECT_TRUE(IsProven(graph, "(= absorbed (Const true))"));
  EXPECT_TRUE(IsProven(graph, "(= kept b)"));
  EXPECT_TRUE(IsProven(graph, "(= spread (Or (And a b) (And a (Not a))))"));
  EXPECT_FALSE(Holds(graph, "(= a b)"));
  EXPECT_FALSE(Holds(graph, "(= (Const true) (Const false))"));
}

// --- datalog

TEST(Datalog, Path) {
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "datalog.egg");
  Load(graph, "(edge 1 2) (edge 2 3) (edge 3 4) (run-schedule (saturate (run reach)))");
  EXPECT_TRUE(IsProven(graph, "(path 1 4)"));
  EXPECT_FALSE(Holds(graph, "(path 4 1)"));
  EXPECT_EQ(graph.LiveRows(graph.FindFunction("path")), 6u);
}

TEST(Datalog, PathAsTerms) {
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "datalog.egg");
  Load(graph, R"(
    (union (True) (Edge 1 2)) (union (True) (Edge 2 3)) (union (True) (Edge 3 4))
    (run-schedule (saturate (run reach-terms))))");
  EXPECT_TRUE(IsProven(graph, "(= (True) (Path 1 4))"));
  EXPECT_FALSE(Holds(graph, "(= (True) (Path 4 1))"));
  Load(graph, "(Path 4 1)");  // to stand in a term makes nothing true
  EXPECT_FALSE(Holds(graph, "(= (True) (Path 4 1))"));
}

TEST(Datalog, PathWithoutTruth) {
  EGraph graph;
  graph.EnableProofs();
  LoadWorkload(graph, "datalog.egg");
  Load(graph, R"(
    (union (True) (Edge 1 2)) (union (True) (Edge 2 3)) (union (True) (Edge 3 4))
    (union (True) (Edge 1 4))
    (run-schedule (saturate (run reach-held)))
    (Holds (Path 4 1)) (Holds (Path 3 1)))");
  EXPECT_TRUE(IsProven(graph, "(= (True) (Holds (Path 1 4)))"));
  EXPECT_TRUE(IsProven(graph, "(= (True) (Holds (Path 2 3)))"));
  EXPECT_FALSE(Holds(graph, "(= (True) (Holds (Path 4 1)))"));
  EXPECT_FALSE(Holds(graph, "(= (True) (Holds (Path 3 1)))"));
}

// --- simple

std::string Simplified(const std::string& term) {
  EGraph graph;
  LoadWorkload(graph, "simple.egg");
  return Load(graph, "(let start " + term + ") (run 30) (extract start)");
}

TEST(Simple, Simplifies) {
  EXPECT_EQ(Simplified("(Mul (Num 0) (Num 42))"), "(Num 0)\n");
  EXPECT_EQ(Simplified(R"((Add (Num 0) (Mul (Num 1) (Sym "foo"))))"), "(Sym \"foo\")\n");
}

// --- math, beyond a start and its goals

TEST(MathBeyond, AssociatingSevenNumbersTakes127Classes) {
  EGraph graph;
  graph.EnableProofs();
  Load(graph, R"(
    (datatype Sum (Num i64) (Add Sum Sum))
    (rewrite (Add a b) (Add b a))
    (rewrite (Add a (Add b c)) (Add (Add a b) c))
    (let start (Add (Num 1) (Add (Num 2) (Add (Num 3) (Add (Num 4) (Add (Num 5)
                 (Add (Num 6) (Num 7))))))))
    (run 7))");
  EXPECT_TRUE(IsProven(graph, R"(
    (= start (Add (Num 7) (Add (Num 6) (Add (Num 5) (Add (Num 4) (Add (Num 3)
               (Add (Num 2) (Num 1)))))))))"));
  EXPECT_EQ(graph.ClassCount(), 127u);  // one for each non-empty subset
}

TEST(MathBeyond, AssociativityOfProductsSaturates) {
  EGraph graph;
  WorkloadCase run;
  run.start = R"((Mul (Sym "x") (Num 1.0)))";
  run.provable = false;
  const WorkloadOutcome outcome = RunWorkload(graph, {"math.egg", "analysis", "calculus"}, run);
  EXPECT_EQ(outcome.stop, "saturated");
  EXPECT_LE(outcome.steps, 6u);
}

TEST(MathBeyond, SharedTermsExtractOnce) {
  // x^(…) over x + x: four e-nodes as a graph, where the smallest tree shares nothing.
  EGraph graph;
  WorkloadCase run;
  run.start = R"((Pow (Add (Sym "x") (Add (Sym "x") (Sym "x"))) (Add (Sym "x") (Sym "x"))))";
  run.provable = false;
  run.max_steps = 3;
  RunWorkload(graph, {"math.egg", "analysis", "calculus"}, run);
  const EGraphView view(graph);
  const DeclaredCosts costs;
  const Extractor extractor(view, costs, Objective::Single(0));
  const ClassRef roots[] = {view.ClassOf(graph.FindGlobal("start")->value)};
  ExactSolution details;
  const Extraction exact = extractor.Exact(roots, {}, &details);
  EXPECT_EQ(exact.dag_cost, 4);
  EXPECT_EQ(details.lower_bound, 4);
}

}  // namespace
}  // namespace l3c::egraph
