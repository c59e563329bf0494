#include "layers/l3/expression.h"

#include <gtest/gtest.h>

#include <string>

namespace l3c::l3 {
namespace {

std::string Canonical(const std::string& text) {
  const support::SourceFile source("test", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  const auto expr = ParseExpr(parser);
  if (expr && !parser.AtEnd()) parser.ErrorExpected("the end");
  if (!expr || diagnostics.has_errors()) return diagnostics.Render(false);
  return PrintExpr(*expr);
}

std::string Problem(const std::string& text) {
  const support::SourceFile source("test", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  const auto expr = ParseExpr(parser);
  EXPECT_TRUE(expr.has_value()) << diagnostics.Render(false);
  const bool accepted = expr && VerifyExpr(*expr, diagnostics);
  EXPECT_NE(accepted, diagnostics.has_errors());
  return diagnostics.has_errors() ? diagnostics.all()[0].message : "";
}

TEST(ExpressionTest, PrintsWithoutNeedlessParentheses) {
  EXPECT_EQ(Canonical("((a.b)+(c))*(d)"), "(a.b + c) * d");
  EXPECT_EQ(Canonical("a-(b-c)-d"), "a - (b - c) - d");
  EXPECT_EQ(Canonical("(a*b)+c/d"), "a * b + c / d");
  EXPECT_EQ(Canonical("-(a+b)*-c"), "-(a + b) * -c");
  EXPECT_EQ(Canonical("!(a<b)&&(c>=1e-4||true)"), "!(a < b) && (c >= 1e-4 || true)");
  EXPECT_EQ(Canonical("(a<b)==(c<d)"), "(a < b) == (c < d)");
  EXPECT_EQ(Canonical("sum(x.y , axis:1)+exp( - 2 )"), "sum(x.y, axis: 1) + exp(-2)");
  EXPECT_EQ(Canonical("slice(x,[1,2 ])"), "slice(x, [1, 2])");
  EXPECT_EQ(Canonical("10K + 1.0 + 3"), "10000.0 + 1.0 + 3");
}

TEST(ExpressionTest, CanonicalTextIsAFixpoint) {
  for (const char* text : {"-(a+b)*-c", "!(!(a<b))", "a-(b-(c-d))", "1-2-3", "(a<b)!=(c<d)",
                           "max(a, 0)", "9007199254740993 + 1", "- -1"}) {
    const std::string once = Canonical(text);
    EXPECT_EQ(Canonical(once), once);
  }
}

TEST(ExpressionTest, ComparisonsDoNotChain) {
  EXPECT_NE(Canonical("a < b < c").find("comparisons do not chain"), std::string::npos);
}

TEST(ExpressionTest, DepthIsBounded) {
  EXPECT_NE(Canonical(std::string(100000, '(') + "1").find("nested deeper"), std::string::npos);
  EXPECT_NE(Canonical(std::string(100000, '-') + "1").find("nested deeper"), std::string::npos);
  std::string chain = "1";
  for (int i = 0; i < 100000; ++i) chain += "+1";
  EXPECT_NE(Canonical(chain).find("nested deeper"), std::string::npos);
}

TEST(ExpressionTest, FunctionsAndTruthsAreChecked) {
  EXPECT_EQ(Problem("mean(max(0, 1 - m.out))"), "");
  EXPECT_EQ(Problem("where(m.out < 0, -m.out, m.out) <= 1"), "");
  EXPECT_EQ(Problem("men(m.out)"), "unknown function 'men'");
  EXPECT_EQ(Problem("mean(1, 2)"), "'mean' takes 1 argument, not 2");
  EXPECT_EQ(Problem("max(1, 2, 3)"), "'max' takes 1 or 2 arguments, not 3");
  EXPECT_EQ(Problem("iota(3)"), "'iota' cannot stand in an expression");
  EXPECT_EQ(Problem("1 + (a < b)"), "'+' wants a number, not a truth");
  EXPECT_EQ(Problem("a && b < c"), "'&&' wants a comparison or a truth, not a number");
}

}  // namespace
}  // namespace l3c::l3
