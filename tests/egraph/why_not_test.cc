// What the engine says about terms that did not become equal, and the commands that ask.
#include "egraph/why_not.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

constexpr const char* kRules =
    R"((datatype Math (Num i64) (Var String) (Add Math Math) (Mul Math Math))
(ruleset late)
(function lo (Math) i64 :merge (max old new))
(rewrite (Add a b) (Add b a) :name "commute")
(rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)) :name "distribute" :ruleset late)
(rewrite (Mul a b) (Mul b a) :name "commute-mul" :numerics fast)
(rule ((= e (Mul a (Num n))) (= n 1) (= x (lo a)) (> x 0)) ((union e a)) :name "one")
(rewrite (Add a (Num 0)) a :name "zero")
(let x (Var "x"))
(let y (Var "y"))
(let sum (Add x (Num 3)))
(let product (Mul x (Num 1)))
(let other (Mul x (Add y (Num 3))))
(let spread (Add (Mul x y) (Mul x (Num 3))))
(set (lo x) 0)
)";

const WhyNotRule* Of(const EGraph& graph, const WhyNot& why_not, const std::string& name) {
  for (const WhyNotRule& r : why_not.rules) {
    if (graph.rule(r.rule).name == name) return &r;
  }
  return nullptr;
}

WhyNot Ask(EGraph& graph, const char* a, const char* b) {
  return ExplainWhyNot(graph, graph.FindGlobal(a)->value, graph.FindGlobal(b)->value);
}

TEST(WhyNoMatch, NamesTheNearestMatchAndWhatItLacks) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, std::string(kRules) + "(run 1)", "r.egg").ok());
  const auto ask = [&](const std::string& name, DescribeClass describe = nullptr) {
    for (uint32_t r = 0; r < graph.rule_count(); ++r) {
      if (graph.rule(RuleId{r}).name == name) return WhyNoMatch(graph, RuleId{r}, describe);
    }
    return WhyNotRule{};
  };
  const WhyNotRule one = ask("one");
  EXPECT_EQ(one.kind, WhyNotRule::Kind::kPremise);
  EXPECT_EQ(one.failed, "(> x 0)");
  EXPECT_EQ(one.matched + 1, one.premises);
  EXPECT_NE(one.nearest.find("a = (Var \"x\")"), std::string::npos) << one.nearest;
  const WhyNotRule named = ask("one", [](Value) { return std::string("something"); });
  EXPECT_NE(named.nearest.find("a = something"), std::string::npos) << named.nearest;
  EXPECT_NE(ask("distribute").held_back.find("'late'"), std::string::npos);
  EXPECT_NE(ask("commute-mul").held_back.find("fast"), std::string::npos);
  EXPECT_EQ(ask("commute").kind, WhyNotRule::Kind::kWaiting) << "it has matched";
}

TEST(WhyNot, NamesThePremiseThatFails) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, std::string(kRules) + "(run 3)", "r.egg").ok());
  const WhyNot why_not = Ask(graph, "product", "x");
  EXPECT_FALSE(why_not.equal);
  const WhyNotRule* one = Of(graph, why_not, "one");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->kind, WhyNotRule::Kind::kPremise);
  EXPECT_EQ(one->failed, "(> x 0)");
  EXPECT_EQ(one->matched + 1, one->premises);
  EXPECT_NE(one->nearest.find("x = 0"), std::string::npos) << one->nearest;
  EXPECT_EQ(one->held_back, "");
  const WhyNotRule* commute = Of(graph, why_not, "commute");
  ASSERT_NE(commute, nullptr);
  EXPECT_EQ(commute->kind, WhyNotRule::Kind::kPremise);
  EXPECT_EQ(commute->matched, 0u);
  const WhyNotRule* zero = Of(graph, why_not, "zero");
  ASSERT_NE(zero, nullptr);
  EXPECT_EQ(zero->kind, WhyNotRule::Kind::kPremise);
}

TEST(WhyNot, SaysWhatHeldARuleBack) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, std::string(kRules) + "(run 3)", "r.egg").ok());
  const WhyNot why_not = Ask(graph, "other", "spread");
  const WhyNotRule* distribute = Of(graph, why_not, "distribute");
  ASSERT_NE(distribute, nullptr);
  EXPECT_EQ(distribute->kind, WhyNotRule::Kind::kWaiting);
  EXPECT_NE(distribute->held_back.find("'late'"), std::string::npos) << distribute->held_back;
  EXPECT_NE(Of(graph, why_not, "commute-mul")->held_back.find("class fast"), std::string::npos);
  const std::string text = WhyNotText(graph, why_not);
  EXPECT_NE(text.find("it would join them, and was not applied"), std::string::npos) << text;

  ASSERT_TRUE(LoadProgram(graph, "(run late 1)", "s.egg").ok());
  EXPECT_TRUE(Ask(graph, "other", "spread").equal);
}

TEST(WhyNot, SaysThatABudgetRanOut) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, kRules, "r.egg").ok());
  ProgramOptions options;
  options.budget.max_matches = 1;
  const ProgramResult result = LoadProgram(graph, "(run 1)", "s.egg", options);
  ASSERT_EQ(result.reports.at(0).stop, StopReason::kMatchLimit);
  const WhyNot why_not = Ask(graph, "sum", "spread");
  const WhyNotRule* commute = Of(graph, why_not, "commute");
  ASSERT_NE(commute, nullptr);
  EXPECT_NE(commute->held_back.find("match limit"), std::string::npos) << commute->held_back;
}

TEST(WhyNot, NamesTheNearestCongruence) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, R"((datatype T (A) (B) (F T i64) (G T T))
(let x (G (F (A) 1) (B)))
(let y (G (F (B) 1) (B)))
(let z (F (A) 2)) (let w (F (A) 3)))",
                          "c.egg")
                  .ok());
  EXPECT_EQ(Ask(graph, "x", "y").congruence,
            "(G (F (A) 1) (B)) and (G (F (B) 1) (B)) would be equal if (F (A) 1) = (F (B) 1)");
  // Literals do not become equal.
  EXPECT_EQ(Ask(graph, "z", "w").congruence, "");
}

// A rule that makes a long chain of terms, many of them united with something.
TEST(WhyNot, OfARuleWithThirtyThousandActions) {
  std::string lets, unions;
  for (int i = 1; i <= 30000; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    lets += "(let y" + n + " (F y" + before + " y" + before + "))";
    if (i % 10 == 0) unions += "(union x (G y" + n + "))";
  }
  for (const bool many : {false, true}) {
    EGraph graph;
    const std::string text =
        "(datatype T (A) (B) (C) (F T T) (G T))"
        "(rule ((= x (G z)) (= z (A))) ((let y0 (F z x)) " +
        lets + (many ? unions : "(union x y30000)") +
        "))"
        "(let a (G (B))) (let b (C))";
    const ProgramResult loaded = LoadProgram(graph, text, "deep.egg");
    ASSERT_TRUE(loaded.ok()) << loaded.status.ToString();
    const WhyNot why =
        ExplainWhyNot(graph, graph.FindGlobal("a")->value, graph.FindGlobal("b")->value);
    ASSERT_EQ(why.rules.size(), 1u);
    EXPECT_EQ(why.rules[0].kind, WhyNotRule::Kind::kPremise);
    EXPECT_LT(WhyNotText(graph, why).size(), 4000u);
    EXPECT_EQ(why.searched_all, !many);
    const auto start = std::chrono::steady_clock::now();
    const WhyNot cut =
        ExplainWhyNot(graph, graph.FindGlobal("a")->value, graph.FindGlobal("b")->value, 0);
    EXPECT_FALSE(cut.searched_all);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

TEST(WhyNot, IsACommand) {
  EGraph graph;
  const ProgramResult result = LoadProgram(
      graph, std::string(kRules) + "(run 3)(why-not product x)(why-not sum (Add (Num 3) x))",
      "r.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  ASSERT_EQ(result.printed.size(), 2u);
  EXPECT_NE(result.printed[0].text.find("fails: (> x 0)"), std::string::npos)
      << result.printed[0].text;
  EXPECT_EQ(result.printed[1].text, "they are equal\n");
  EXPECT_EQ(LoadProgram(graph, "(why-not x 1)", "r.egg").status.ToString(),
            "r.egg:1:1: error: expected two terms of one declared sort");
}

TEST(Prove, PrintsAProof) {
  EGraph graph;
  const ProgramResult result =
      LoadProgram(graph, R"((datatype Math (Num i64) (Var String) (Add Math Math))
(rewrite (Add a b) (Add b a) :name "commute")
(rewrite (Add a (Num 0)) a :name "zero")
(let e (Add (Num 0) (Var "x")))
(run 3)
(prove (= e (Var "x"))))",
                  "sum.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  ASSERT_EQ(result.printed.size(), 1u);
  EXPECT_EQ(result.printed[0].text, R"(1. (Num 0) is there
     stated at sum.egg:4: (let e (Add (Num 0) (Var "x")))
2. (Add (Num 0) (Var "x")) is there
     stated at sum.egg:4: (let e (Add (Num 0) (Var "x")))
3. (Add (Var "x") (Num 0)) = (Add (Num 0) (Var "x"))
     by rule "commute" (sum.egg:2) with a = (Num 0), b = (Var "x"); because 2
4. (Add (Num 0) (Var "x")) = (Var "x")
     by rule "zero" (sum.egg:3) with a = (Var "x"); because 1, 3
)");
}

TEST(Prove, OfFactsAndVariables) {
  EGraph graph;
  const ProgramResult result =
      LoadProgram(graph, R"((relation edge (i64 i64)) (relation path (i64 i64))
(rule ((edge a b)) ((path a b)) :name "step")
(rule ((path a b) (edge b c)) ((path a c)) :name "more")
(edge 1 2) (edge 2 3)
(run 3)
(prove (path 1 x) (> x 2))
(prove-exists path))",
                  "path.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  ASSERT_EQ(result.printed.size(), 2u);
  EXPECT_NE(
      result.printed[0].text.find("(path 1 3)\n     by rule \"more\" (path.egg:3) with a = 1, "
                                  "b = 2, c = 3; because "),
      std::string::npos)
      << result.printed[0].text;
  EXPECT_EQ(LoadProgram(graph, "(prove (path 3 1))", "p.egg").status.ToString(),
            "p.egg:1:1: error: no match for '(prove (path 3 1))'");
}

TEST(Prove, NeedsALog) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, "(datatype T (A)) (A)", "a.egg").ok());
  EXPECT_EQ(LoadProgram(graph, "(prove (A))", "b.egg").status.ToString(),
            "b.egg:1:1: error: nothing has been written down for proofs; run with --proofs");
}

TEST(Prove, ChecksAreProvenOnRequest) {
  EGraph graph;
  graph.EnableProofs();
  ProgramOptions options;
  options.prove_checks = true;
  const ProgramResult result = LoadProgram(graph, R"((datatype T (A) (B) (F T))
(rewrite (F x) x)
(F (F (A)))
(run 3)
(check (= (F (F (A))) (A)))
(check (A) (= (F (A)) (A)))
(fail (check (= (A) (B))))
(check (= 3 (+ 1 2))))",
                                           "c.egg", options);
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(result.proven_checks, 3u);
  EXPECT_TRUE(result.unproven_checks.empty()) << result.unproven_checks[0];
}

TEST(Prove, ContainersThatShareAreLookedAtOnce) {
  // Each vector holds the one before twice: as a tree the last has 2^50 leaves.
  std::string text = "(datatype T (A) (B) (G T))\n(sort V0 (Vec T))\n";
  std::string same = "(vec-of (A) (A))", other = "(vec-of (B) (A))";
  text += "(let $v0 " + same + ")\n(let $w0 " + other + ")\n";
  for (int i = 1; i < 50; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    text += "(sort V" + n + " (Vec V" + before + "))\n";
    for (const char* name : {"$v", "$w"}) {
      text += "(let " + (name + n) + " (vec-of " + (name + before) + " " + (name + before) + "))\n";
    }
  }
  text +=
      "(constructor Of (V49) T)\n(let $x (Of $v49))\n(let $y (Of $w49))\n"
      "(rewrite (B) (A))\n(run 1)\n(check (= $x $y))\n(check (= $x (Of v)))\n(prove (= $x $y))";
  EGraph graph;
  graph.EnableProofs({.redundant = true});
  ProgramOptions options;
  options.prove_checks = true;
  const ProgramResult result = LoadProgram(graph, text, "c.egg", options);
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(result.proven_checks, 2u);
  EXPECT_TRUE(result.unproven_checks.empty()) << result.unproven_checks[0];
  EXPECT_LT(result.output().size(), 100'000u);
}

TEST(Prove, LiteralsOfAllSorts) {
  EGraph graph;
  graph.EnableProofs();
  ProgramOptions options;
  options.prove_checks = true;
  const ProgramResult result = LoadProgram(graph, R"(
(datatype T (I i64) (D f64) (B bool) (S String) (Q Rational) (Z BigInt) (R BigRat))
(rule ((= x (Q q)) (= y (R r)) (< q (rational 1 1))) ((union x y)))
(rule ((I i) (D d) (B b) (S s) (= x (Z z)) (= y (Q (+ q (rational 1 2)))) (Q q)) ((union x y)))
(I -7) (D 1e300) (B true) (S "é\"") (Z (from-string "123456789012345678901234567890"))
(Q (rational 1 -3)) (Q (rational 1 6)) (R (bigrat (bigint 2) (bigint 4)))
(run 3)
(check (= (Q (rational 1 -3)) (R (bigrat (bigint 1) (bigint 2)))))
(check (= (Z (from-string "123456789012345678901234567890")) (Q (rational 1 6)))))",
                                           "c.egg", options);
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(result.proven_checks, 2u);
  EXPECT_TRUE(result.unproven_checks.empty()) << result.unproven_checks[0];
}

}  // namespace
}  // namespace l3c::egraph
