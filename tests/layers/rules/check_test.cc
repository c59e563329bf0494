#include "layers/rules/check.h"

#include <gtest/gtest.h>

#include "rewrites/rewrites.h"

namespace l3c::rules {
namespace {

CheckReport Check(const std::string& text, CheckOptions options = {},
                  const std::string& name = "r.egg") {
  const support::SourceFile source(name, text);
  support::Diagnostics diagnostics;
  const auto file = ReadRuleFile(source, diagnostics);
  EXPECT_TRUE(file) << diagnostics.Render(false);
  return file ? CheckRules(*file, options) : CheckReport{};
}

std::string Algebra(const std::string& left, const std::string& right,
                    const std::string& numerics = "exact", const std::string& when = "") {
  return "(rewrite " + left + " " + right + " :ruleset algebra :numerics " + numerics +
         (when.empty() ? "" : " :when (" + when + ")") + ")";
}

// Everything that a counterexample says, to look for words in it.
std::string Text(const RuleVerdict& verdict) {
  if (!verdict.counterexample) return std::string(VerdictName(verdict.kind)) + " " + verdict.why;
  std::string text = verdict.counterexample->reason + "\n";
  for (const std::string& line : verdict.counterexample->lines) text += line + "\n";
  return text + verdict.fix;
}

TEST(CheckRules, LawsThatHold) {
  const std::pair<std::string, std::string> laws[] = {
      {"(Add a b)", "(Add b a)"},
      {"(Max a a)", "a"},
      {"(Max (Max a b) c)", "(Max a (Max b c))"},
      {"(Reshape (Reshape a s) t)", "(Reshape a t)"},
      {"(Permute (Matmul a b) \"1,0\")", "(Matmul (Permute b \"1,0\") (Permute a \"1,0\"))"},
      {"(Where c a a)", "a"},
      {"(Expand (Neg a) s)", "(Neg (Expand a s))"},
      {"(Pad (Permute a \"1,0\") \"1,2,3,4\")", "(Permute (Pad a \"3,4,1,2\") \"1,0\")"},
      {"(Gather (Neg x) i)", "(Gather (Neg x) i)"},
      {"(Maximum (Flip a \"0\") \"0\")", "(Maximum a \"0\")"},
      {"(Cast (Cast a \"f64\") \"f64\")", "(Cast a \"f64\")"},
  };
  for (const auto& [left, right] : laws) {
    const CheckReport report = Check(Algebra(left, right));
    ASSERT_EQ(report.rules.size(), 1u);
    EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kHolds) << left << Text(report.rules[0]);
    EXPECT_EQ(report.rules[0].cases, 200) << left;
  }
}

// A law that does not hold, the least of its counterexamples, and what would be true of it.
TEST(CheckRules, WhatDoesNotHoldIsShownAtItsSmallest) {
  struct Case {
    std::string rule;
    const char* shows;
    const char* fix;
  };
  const Case cases[] = {
      // −0 + 0 is 0.
      {Algebra("(Add a (Expand (Number 0.0 t) s))", "a"), "a : f32[] = -0.0", "reassoc"},
      {Algebra("(Add (Add a b) c)", "(Add a (Add b c))"), "bits", "reassoc"},
      {Algebra("(Mul a (Add b c))", "(Add (Mul a b) (Mul a c))", "reassoc"), "NaN or an infinity",
       "fast"},
      // −1·0 is −0, and NaN·0 is NaN.
      {Algebra("(Mul a (Expand (Number 0.0 t) s))", "(Expand (Number 0.0 t) s)"), "-0.0", "fast"},
      {Algebra("(Mul a (Expand (Number 0.0 t) s))", "(Expand (Number 0.0 t) s)", "reassoc"),
       "a : f32[] = inf", "fast"},
      {Algebra("(Sum (Flip a x) axes)", "(Sum a axes)"), "f32[", "premise"},
      {Algebra("(Recip (Recip a))", "a"), "f32[]", "reassoc"},
      // One element with NaN: max says NaN, the comparison says the other one.
      {Algebra("(Where (CmpLt a b) b a)", "(Max a b)"), "nan", "fast"},
      {Algebra("(Sqrt (Mul a a))", "a", "fast"), "a : f32[] = -", "premise"},
      {Algebra("(Permute (Permute a p) q)", "(Permute a p)"), "", "premise"},
      {Algebra("(Sum a axes)", "(Maximum a axes)", "fast"), "", "premise"},
      {Algebra("(Neg (Sum a axes))", "(Sum (Neg a) axes)"), "a : f32[1] = {0.0}", "reassoc"},
  };
  for (const Case& c : cases) {
    const CheckReport report = Check(c.rule);
    ASSERT_EQ(report.rules.size(), 1u);
    const RuleVerdict& verdict = report.rules[0];
    EXPECT_EQ(verdict.kind, RuleVerdict::Kind::kFails) << c.rule << Text(verdict);
    EXPECT_NE(Text(verdict).find(c.shows), std::string::npos) << c.rule << "\n" << Text(verdict);
    EXPECT_NE(verdict.fix.find(c.fix), std::string::npos) << c.rule << "\n" << Text(verdict);
    EXPECT_FALSE(report.sound());
  }
}

TEST(CheckRules, ARuleThatChangesTheShapeFails) {
  for (const char* rule :
       {"(rewrite (Permute a \"1,0\") a :ruleset algebra)",
        "(rewrite (Sum a axes) (Reshape a axes) :ruleset algebra)",
        "(rewrite (Neg a) (Cast a \"f99\") :ruleset algebra)",
        "(rewrite (Neg a) (Reshape a \"x\") :ruleset algebra)",
        "(rewrite (Neg a) (Input \"x\") :ruleset algebra)",
        "(rewrite (Neg a) (Pad a \"9223372036854775807,1\") :ruleset algebra)"}) {
    const CheckReport report = Check(rule);
    EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kFails) << rule << Text(report.rules[0]);
  }
}

// The same law with the premise under which it is true, and without.
TEST(CheckRules, PremisesHoldInEveryInstance) {
  EXPECT_FALSE(Check(Algebra("(Mul a a)", "a")).sound());
  const CheckReport on_bool = Check(Algebra("(Mul a a)", "a", "exact", "(= (dtype a) \"bool\")"));
  EXPECT_EQ(on_bool.rules[0].kind, RuleVerdict::Kind::kHolds) << Text(on_bool.rules[0]);

  EXPECT_FALSE(Check(Algebra("(Flip a \"0\")", "a")).sound());
  const CheckReport one =
      Check(Algebra("(Flip a \"0\")", "a", "exact", "(= 1 (extent (shape a) 0))"));
  EXPECT_EQ(one.rules[0].kind, RuleVerdict::Kind::kHolds) << Text(one.rules[0]);
  EXPECT_EQ(one.rules[0].cases, 200);

  const CheckReport scalar = Check(Algebra("(Neg (Neg a))", "a", "exact", "(= (shape a) \"\")"));
  EXPECT_EQ(scalar.rules[0].cases, 200);
}

TEST(CheckRules, FactsOfOtherRulesArePremises) {
  const std::string text =
      "(relation positive (Val))\n"
      "(rule ((= e (Exp2 a))) ((positive e)) :ruleset algebra :numerics exact)\n"
      "(rewrite (Max (Exp2 a) (Neg (Exp2 b))) (Exp2 a) :when ((positive (Exp2 a)))\n"
      "  :ruleset algebra :numerics fast)\n";
  const CheckReport report = Check(text);
  ASSERT_EQ(report.rules.size(), 2u);
  EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kFacts);
  EXPECT_EQ(report.rules[1].kind, RuleVerdict::Kind::kHolds) << Text(report.rules[1]);
}

// Nothing is known of a rule that no instance meets, and it does not count as one that holds.
TEST(CheckRules, WhatNothingMatchesIsNotTested) {
  const std::pair<std::string, const char*> cases[] = {
      {Algebra("(Neg a)", "a", "exact", "(= (dtype a) \"f32\") (= (dtype a) \"f64\")"), ""},
      {Algebra("(Neg a)", "a", "exact", "(= 1 2)"), ""},
      {Algebra("(Flip a \"0\")", "a", "exact", "(= 1000 (extent (shape a) 0))"), "premises"},
      {"(relation never (Val))\n(rewrite (Neg a) a :when ((never a)) :ruleset algebra)", "never"},
      {"(constructor Mine (Val) Val)\n(rewrite (Mine a) a :ruleset algebra)", "Mine"},
      {Algebra("(Matmul a (Matmul a a))", "a", "exact", "(= (shape a) \"3\")"), ""},
  };
  for (const auto& [rule, why] : cases) {
    const CheckReport report = Check(rule);
    const RuleVerdict& verdict = report.rules.back();
    EXPECT_EQ(verdict.kind, RuleVerdict::Kind::kUntested) << rule << Text(verdict);
    EXPECT_FALSE(verdict.why.empty());
    EXPECT_NE(verdict.why.find(why), std::string::npos) << verdict.why;
  }
}

TEST(CheckRules, WhatContradictsTheProgramFails) {
  for (const char* rule :
       {"(rule ((= e (Neg a))) ((set (shape e) \"3,3\")) :ruleset algebra)",
        "(rule ((= e (Neg a))) ((set (dtype e) \"f99\")) :ruleset algebra)",
        "(rule ((= e (Neg a))) ((panic \"no\")) :ruleset algebra)",
        "(rule ((= e (Neg a))) ((delete (Neg a))) :ruleset algebra)",
        "(rule ((given v)) ((delete (given v))) :ruleset choose)",
        "(rule ((StateFits m)) ((union (Data) (Params m))) :ruleset placement)"}) {
    const CheckReport report = Check(rule);
    EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kFails) << rule << Text(report.rules[0]);
  }
}

TEST(CheckRules, AFileMayHaveAnyNames) {
  const CheckReport report = Check(
      "(ruleset rule-under-test)\n(ruleset meanings)\n(relation meaning-Load (i64))\n"
      "(rule ((inline d c) (leaf d v)) ((union (InReg v c) (Leaf d c))) :ruleset choose)");
  EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kHolds) << Text(report.rules[0]);
}

TEST(CheckRules, RulesWithoutAnEndAreNamed) {
  const CheckReport grows = Check(Algebra("(Exp2 a)", "(Exp2 (Neg (Neg a)))"));
  EXPECT_EQ(grows.rules[0].kind, RuleVerdict::Kind::kHolds) << Text(grows.rules[0]);
  EXPECT_NE(grows.rules[0].grows.find("(Exp2 a)"), std::string::npos) << grows.rules[0].grows;
  EXPECT_EQ(Check(Algebra("(Mul a b)", "(Mul b a)")).rules[0].grows, "");
}

TEST(CheckRules, RulesOfHigherClassesAreLeftOut) {
  const CheckReport report =
      Check(Algebra("(Neg a)", "a", "fast"), {.numerics = egraph::Numerics::kReassoc});
  EXPECT_EQ(report.rules[0].kind, RuleVerdict::Kind::kLeftOut);
  EXPECT_TRUE(report.sound());
}

TEST(CheckRules, TheSameSeedGivesTheSameCounterexample) {
  const std::string rule = Algebra("(Add (Add a b) c)", "(Add a (Add b c))");
  EXPECT_EQ(Text(Check(rule).rules[0]), Text(Check(rule).rules[0]));
  const CheckReport few = Check(rule, {.cases = 50});
  const CheckReport many = Check(rule, {.cases = 1000});
  EXPECT_EQ(few.rules[0].counterexample->lines, many.rules[0].counterexample->lines);
}

// The rules of rewrites/, 200 cases each. The nightly run has more of them.
TEST(CheckRules, EveryBuiltInRuleHolds) {
  for (const rewrites::RuleFile& embedded : rewrites::All()) {
    const support::SourceFile source{std::string(embedded.path), std::string(embedded.text)};
    support::Diagnostics diagnostics;
    const auto file = ReadRuleFile(source, diagnostics);
    ASSERT_TRUE(file);
    for (const RuleVerdict& verdict : CheckRules(*file, {.cases = 200}).rules) {
      EXPECT_EQ(verdict.kind, RuleVerdict::Kind::kHolds) << verdict.rule.name << Text(verdict);
      EXPECT_EQ(verdict.cases, 200) << verdict.rule.name;
    }
  }
}

// A slip of the pen in any of them is found.
TEST(CheckRules, WrongVariantsOfBuiltInRulesFail) {
  struct Slip {
    const char* file;
    std::string from, to;
  };
  const Slip slips[] = {
      {"algebra", "(compose-orders p q)", "(compose-orders q p)"},
      {"algebra", "(= (identity-order order) true)", ""},
      {"algebra", "(Neg (Neg a)) a", "(Neg a) a"},
      {"algebra", "(Number 1.0 t)", "(Number 2.0 t)"},
      {"algebra", "(Sum (Sum a inner) \"0\")", "(Sum (Maximum a inner) \"0\")"},
      {"algebra", ":numerics reassoc", ":numerics exact"},

      {"fusion", "(Load v c (InMem v q))", "(Load v c (InMem v c))"},
      {"fusion", "(Hoist v c (InReg v k))", "(Hoist v c (InReg v c))"},
      {"fusion", "(Unary d c (InReg a c))", "(Unary d c (InReg v c))"},
      {"fusion", "(Binary d c (InReg a c) (InReg b c))", "(Binary d c (InReg b c) (InReg a c))"},
      {"fusion", "(Fold d c p (InReg a p))", "(Fold d c p (InReg a c))"},
      {"fusion", "(InMem a qa) (InMem b qb)", "(InMem a qa) (InMem b qa)"},
      {"fusion", "((union (InReg v c) (Leaf d c)))", "((union (InReg v d) (Leaf d c)))"},
      {"fusion", "(Row d c (InMem table q)", "(Row d c (InMem index q)"},

      {"kernel_grouping", "(Store v k (Run k) (InReg v c))", "(Store v k (Run q) (InReg v c))"},
      {"kernel_grouping", "(Sooner v q (InMem v p))", "(Sooner v q (InMem v q))"},
      {"kernel_grouping", "(union (InMem v -1) (Given v))", "(union (InMem v 0) (Given v))"},
      {"kernel_grouping", "(Rest k (+ i 1))", "(Rest k (+ i 2))"},
      {"kernel_grouping", "((union (Rest k n) (Nothing)))", "((union (Rest k 0) (Nothing)))"},
      {"kernel_grouping", "((kept v)) ((stored v))", "((kept v)) ((stored (+ v 1)))"},
      {"layout", "((stored t))", "((stored (* t 2)))"},

      {"checkpointing", "(Save v s (KeptAt v p))", "(Save v s (KeptAt v s))"},
      {"checkpointing", "(Recompute v s (RunAgain k s))", "(Recompute v s (RunAgain v s))"},
      {"checkpointing", "(repeatable k s n) (makes k v)", "(repeatable k s n) (makes n v)"},
      {"checkpointing", "(Operand (KeptAt a s)", "(Operand (KeptAt a i)"},
      {"checkpointing", "(OperandsFrom k s n) (NoOperand)", "(OperandsFrom k s 1) (NoOperand)"},

      {"placement", "(Move (Made v k) what k m)", "(Move (Made v k) what m k)"},
      {"placement", "(CanRun op c) (Local c m))\n      ((union (Made v m) (Run1",
       "(Local c m) (Link op m))\n      ((union (Made v m) (Run1"},
      {"placement", "(Run2 op c (Placed a m) (Placed b m))",
       "(Run2 op c (Placed b m) (Placed a m))"},
      {"placement", "(StepAt m (Made next m))", "(StepAt m (Made batch m))"},
      {"placement", "(Link k m) (Adjacent k m)", "(Link k m)"},
      {"placement", "(WantMade v m) (Tight v m)", "(WantMade v m)"},
      {"placement", "(Reads what k m))\n      ((union (Placed v m) (Beside",
       "(Link k m))\n      ((union (Placed v m) (Beside"},
      {"placement", "(Room v p) (= v (Op1 \"all_reduce\" a))", "(= v (Op1 \"all_reduce\" a))"},
      {"placement", "(Op1 \"all_reduce\" grads) (State p)", "grads (State p)"},
      {"placement", "(Pipe2 op c (Cuts c)", "(Pipe2 op c (Cuts m)"},
      {"placement", "(Shift s t))\n      ((Reached c t))", "(Shift s t))\n      ((Reached t c))"},
      {"placement", "(StageFits c s) (Micro n)", "(Micro n)"},

      {"lower_l3_l2", "(/ y 2) (/ x 2)", "y x"},
      {"lower_l3_l2", "(PowerOfTwo w) (WidthBound n) (<= w n)", "(PowerOfTwo w)"},
      {"lower_l3_l2", "(Legal 5) (Deeper h)", "(Deeper h)"},
      {"lower_l3_l2", "(DepthBound n) (< (+ h 1) n)", "(DepthBound n)"},
      {"lower_l3_l2", "(KeepsFirst k n) (AskedCount n)", "(KeepsFirst k n)"},
      {"lower_l3_l2", "(union (SampleWanted) (EpochShuffle b))",
       "(union (SampleWanted) (EpochShuffle (* b 2)))"},
  };
  for (const Slip& slip : slips) {
    std::string wrong(rewrites::Find(slip.file)->text);
    ASSERT_NE(wrong.find(slip.from), std::string::npos) << slip.file << ": " << slip.from;
    wrong.replace(wrong.find(slip.from), slip.from.size(), slip.to);
    EXPECT_FALSE(Check(wrong, {.cases = 60}, std::string(slip.file) + ".egg").sound())
        << slip.file << ": " << slip.to;
  }
}

TEST(CheckRules, WhatNoLoweringKnowsIsRefused) {
  // A term of one's own as an answer; facts that the lowering states; two requests made one.
  for (const char* rule :
       {"(constructor Magic (i64) Reg)\n"
        "(rule ((inline d c)) ((union (InReg d c) (Magic d))) :ruleset choose)",
        "(rule ((given v)) ((reads v 0 -1)) :ruleset choose)",
        "(rule ((hoisted v c k)) ((union (InReg v c) (InReg v k))) :ruleset choose)"}) {
    const CheckReport report = Check(rule);
    EXPECT_FALSE(report.sound()) << rule;
    EXPECT_FALSE(Text(report.rules.back()).empty());
  }
  // Facts between the rules of a file are its own business.
  const CheckReport own = Check(
      "(relation large (i64))\n"
      "(rule ((reduction v) (contraction v)) ((large v)) :ruleset store)");
  EXPECT_TRUE(own.sound()) << Text(own.rules[0]);
}

}  // namespace
}  // namespace l3c::rules
