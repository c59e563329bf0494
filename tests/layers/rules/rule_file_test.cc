#include "layers/rules/rule_file.h"

#include <gtest/gtest.h>

#include "rewrites/rewrites.h"

namespace l3c::rules {
namespace {

std::string ErrorOf(const std::string& text) {
  const support::SourceFile source("r.egg", text);
  support::Diagnostics diagnostics;
  if (ReadRuleFile(source, diagnostics)) return "";
  return diagnostics.Render(false);
}

TEST(RuleFile, SaysWhichLoweringItBelongsTo) {
  const support::SourceFile source(
      "r.egg",
      "; two rules\n"
      "(rewrite (Neg (Neg a)) a :name \"twice\" :ruleset algebra :numerics exact)\n"
      "(relation seen (Val))\n"
      "  (rule ((= e (Exp2 a))) ((seen e)) :ruleset algebra :numerics fast)\n");
  support::Diagnostics diagnostics;
  const auto file = ReadRuleFile(source, diagnostics);
  ASSERT_TRUE(file) << diagnostics.Render(false);
  EXPECT_EQ(file->lowering, Lowering::kKernels);
  ASSERT_EQ(file->rules.size(), 2u);
  EXPECT_EQ(file->rules[0].name, "twice");
  EXPECT_EQ(file->rules[0].numerics, egraph::Numerics::kExact);
  EXPECT_EQ(source.Position(file->rules[0].span.begin).line, 2u);
  EXPECT_EQ(source.Position(file->rules[1].span.begin).line, 4u);
  EXPECT_EQ(source.Position(file->rules[1].span.begin).column, 3u);
  EXPECT_EQ(file->rules[1].numerics, egraph::Numerics::kFast);
}

TEST(RuleFile, EveryBuiltInFileIsOne) {
  size_t rules = 0;
  for (const rewrites::RuleFile& embedded : rewrites::All()) {
    const support::SourceFile source{std::string(embedded.path), std::string(embedded.text)};
    support::Diagnostics diagnostics;
    const auto file = ReadRuleFile(source, diagnostics);
    ASSERT_TRUE(file) << diagnostics.Render(false);
    rules += file->rules.size();
    for (const RuleInfo& rule : file->rules) {
      EXPECT_NE(FindRuleset(rule.ruleset), nullptr);
      EXPECT_TRUE(rule.span.known()) << rule.name;
    }
  }
  EXPECT_GT(rules, 60u);
}

TEST(RuleFile, BadOnesAreRefusedAtTheirPlace) {
  struct Case {
    const char* text;
    const char* place;
    const char* message;
  };
  const Case cases[] = {
      {"model classify {\n  in: x\n}", "r.egg:1:1: error[syntax]", "declaration"},
      {"(rewrite (Neg a) a :ruleset algebra", "r.egg:1", "error[syntax]"},
      {"(run 10)", "r.egg:1:2: error[syntax]", "'run' is neither"},
      {"\n(input seen \"/etc/passwd\")", "r.egg:2:2: error[syntax]", "'input' is neither"},
      {"(rewite (Neg a) a)", "r.egg:1:2: error[syntax]", "write 'rewrite'"},
      {"(rewrite (Neg (Neg a)) a)", "r.egg:1:1: error[consistency]", "names no ruleset"},
      {"(rewrite (Neg (Neg a)) a :ruleset algbra)", "r.egg:1:35: error[consistency]",
       "did you mean 'algebra'?"},
      {"(rewrite (Foo a) a :ruleset algebra)", "r.egg:1:11: error[consistency]", "Foo"},
      {"(rewrite (Neg a b) a :ruleset algebra)", "r.egg:1:10: error[consistency]", "Neg"},
      {"(rewrite (Neg a) (Add a b) :ruleset algebra)", "r.egg:1:25: error[consistency]", "b"},
      {"(rewrite (Neg a) a :ruleset algebra :numerics exakt)", "r.egg:1:47: error[consistency]",
       "exact, reassoc or fast"},
      {"(rewrite (Neg a) a :ruleset algebra)\n"
       "(rule ((Batch b)) ((union (SampleWanted) (EpochShuffle b))) :ruleset l3_to_l2)",
       "r.egg:2:70: error[consistency]", "files of their own"},
      {"(rewrite (Neg a) \"a\" :ruleset algebra)", "r.egg:1:18: error[consistency]", ""},
  };
  for (const Case& c : cases) {
    const std::string error = ErrorOf(c.text);
    EXPECT_NE(error.find(c.place), std::string::npos) << c.text << "\n" << error;
    EXPECT_NE(error.find(c.message), std::string::npos) << c.text << "\n" << error;
  }
}

TEST(RuleFile, AnEditedCopyStandsInForTheBuiltInFile) {
  const auto read = [](const std::string& text) {
    const support::SourceFile source("r.egg", text);
    support::Diagnostics diagnostics;
    const auto file = ReadRuleFile(source, diagnostics);
    EXPECT_TRUE(file) << diagnostics.Render(false);
    return file && file->stands_in;
  };
  EXPECT_TRUE(read(std::string(rewrites::Find("lower_l3_l2")->text) + "; edited\n"));
  EXPECT_TRUE(read(std::string(rewrites::Find("placement")->text) + "; edited\n"));
  EXPECT_FALSE(read(std::string(rewrites::Find("fusion")->text) + "; edited\n"));
}

TEST(RuleFile, AFileOfDeclarationsHasNoRules) {
  const support::SourceFile source("r.egg", "(sort S)\n");
  support::Diagnostics diagnostics;
  const auto file = ReadRuleFile(source, diagnostics);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->rules.empty());
  EXPECT_FALSE(file->lowering);
}

}  // namespace
}  // namespace l3c::rules
