#include "layers/support/parser.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "layers/support/escape_hatch.h"

namespace l3c::support {
namespace {

struct Text {
  explicit Text(std::string text)
      : source("test.l3", std::move(text)), diagnostics(&source), parser(source, diagnostics) {}
  std::string Message(size_t i = 0) const {
    return i < diagnostics.all().size() ? diagnostics.all()[i].message : "";
  }
  SourceFile source;
  Diagnostics diagnostics;
  ParserBase parser;
};

TEST(ParserTest, LooksAheadAndConsumes) {
  Text text("a b c d");
  EXPECT_TRUE(text.parser.Peek(3).IsWord("d"));
  EXPECT_TRUE(text.parser.AcceptWord("a"));
  EXPECT_TRUE(text.parser.Peek(2).IsWord("d"));
  EXPECT_EQ(text.parser.ExpectName("x")->text, "b");
}

TEST(ParserTest, ExpectedAndFound) {
  Text text("model 12");
  text.parser.Next();
  EXPECT_FALSE(text.parser.ExpectName("the name of a model").has_value());
  EXPECT_EQ(text.Message(), "expected the name of a model, found number '12'");
  text.parser.Next();
  EXPECT_FALSE(text.parser.Expect("{"));
  EXPECT_EQ(text.Message(1), "expected '{', found end of file");
}

TEST(ParserTest, OneErrorAToken) {
  Text text("?");
  text.parser.Expect("(");
  text.parser.Expect("[");
  EXPECT_EQ(text.diagnostics.all().size(), 1u);
}

TEST(ParserTest, NumbersAreChecked) {
  Text text("500K -3 1e-4 -inf 32GB 2GB/s 10ms 4 2GB");
  EXPECT_EQ(text.parser.ExpectInteger("n"), 500000);
  EXPECT_EQ(text.parser.ExpectInteger("n", -5), -3);
  EXPECT_EQ(text.parser.ExpectReal("x"), 1e-4);
  EXPECT_EQ(text.parser.ExpectReal("x"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.parser.ExpectBytes("x"), 32000000000);
  EXPECT_EQ(text.parser.ExpectRate("x"), 2e9);
  EXPECT_EQ(text.parser.ExpectSeconds("x"), 0.01);
  EXPECT_FALSE(text.parser.ExpectInteger("a width", 5));
  EXPECT_EQ(text.Message(), "a width must be at least 5, not 4");
  EXPECT_FALSE(text.parser.ExpectRate("a bandwidth"));
  EXPECT_EQ(text.Message(1), "expected a rate such as 2GB/s, found '2GB', a size in bytes");
}

TEST(ParserTest, Lists) {
  Text text("[1, 2, 3,] () (4 5) x");
  std::vector<int64_t> items;
  const auto item = [&] {
    const auto value = text.parser.ExpectInteger("a number");
    if (value) items.push_back(*value);
    return value.has_value();
  };
  EXPECT_TRUE(text.parser.ParseList("[", "]", item));
  EXPECT_TRUE(text.parser.ParseList("(", ")", item));
  EXPECT_EQ(items, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_FALSE(text.parser.ParseList("(", ")", item));
  EXPECT_EQ(text.Message(), "expected ',' or ')', found number '5'");
  EXPECT_TRUE(text.parser.AtWord("x"));
}

TEST(ParserTest, UnknownNamesAreSuggested) {
  Text text("modle");
  const Name name = *text.parser.ExpectName("a word");
  text.parser.ErrorUnknown("declaration", name, {"data", "model", "loss"});
  EXPECT_EQ(text.Message(), "unknown declaration 'modle'");
  EXPECT_EQ(text.diagnostics.all()[0].fix, "did you mean 'model'?");
}

TEST(ParserTest, NestingIsBounded) {
  Text brackets(std::string(10000, '[') + std::string(10000, ']'));
  while (!brackets.parser.AtEnd()) brackets.parser.Next();
  ASSERT_EQ(brackets.diagnostics.all().size(), 1u);
  EXPECT_EQ(brackets.Message(), "brackets are nested deeper than 256 levels");

  Text minuses(std::string(10000, '-') + "1");
  int deepest = 0;
  const std::function<void(int)> negate = [&](int depth) {
    ParserBase::Nesting nesting(minuses.parser);
    if (!nesting.ok()) return;
    deepest = depth;
    if (minuses.parser.Accept("-")) negate(depth + 1);
  };
  negate(1);
  EXPECT_EQ(deepest, ParserBase::kMaxNesting);
  EXPECT_TRUE(minuses.parser.AtEnd());
  EXPECT_EQ(minuses.Message(), "this is nested deeper than 256 levels");
}

TEST(ParserTest, StopsAfterTwentyErrors) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x\n";
  Text text(many);
  while (!text.parser.AtEnd()) {
    text.parser.Expect("{");
    text.parser.Next();
  }
  EXPECT_EQ(text.diagnostics.all().size(), Diagnostics::kMaxReported);
}

TEST(ParserTest, RecoversAtDeclarationsAndFields) {
  Text text("data a {\n x : (((\n model m {\n}\nmodel n {}\n");
  text.parser.SkipToDeclaration({"model"});
  EXPECT_TRUE(text.parser.AtWord("data") == false);
  EXPECT_EQ(text.source.Position(text.parser.Here()).line, 5u);

  Text fields("{ a b (c\n d) e\n f : 1 }");
  fields.parser.Next();
  fields.parser.SkipToField(1, fields.parser.Here());
  EXPECT_TRUE(fields.parser.AtWord("f"));
  fields.parser.SkipToField(1, fields.parser.Here());
  EXPECT_TRUE(fields.parser.At("}"));
}

TEST(ParserTest, RecoveryAlwaysMakesProgress) {
  Text stray("{ ) ] ) x\n } }");
  stray.parser.Next();
  int fields = 0;
  while (!stray.parser.At("}") && !stray.parser.AtEnd()) {
    ASSERT_LT(++fields, 10);
    const uint32_t field = stray.parser.Here();
    stray.parser.ExpectName("a field");
    stray.parser.SkipToField(1, field);
  }
  stray.parser.SkipToDeclaration({"model"});
  EXPECT_TRUE(stray.parser.AtEnd());
}

TEST(ParserTest, HeaderNamesTheLayer) {
  Text right("# l3c l3 v1\n");
  right.parser.CheckHeader("l3");
  EXPECT_FALSE(right.diagnostics.has_errors());
  Text wrong("# l3c l2 v1\n");
  wrong.parser.CheckHeader("l3");
  EXPECT_EQ(wrong.Message(), "this is an l2 file, not an l3 file");
  Text future("# l3c l3 v2\n");
  future.parser.CheckHeader("l3");
  EXPECT_EQ(future.Message(), "unknown version 2 of l3 text");
}

TEST(ParserTest, EscapeHatches) {
  Text text("#[l2::backward(evolution( pop:50 ))] #[l1::on(gpu_1)] #[l0::fast] #[l3::x] y");
  const auto backward = ParseEscapeHatch(text.parser, "l3");
  ASSERT_TRUE(backward.has_value());
  EXPECT_EQ(PrintEscapeHatch(*backward), "#[l2::backward(evolution(pop: 50))]");
  EXPECT_EQ(text.source.Slice(backward->args_span), "evolution( pop:50 )");
  EXPECT_EQ(PrintEscapeHatch(*ParseEscapeHatch(text.parser, "l3")), "#[l1::on(gpu_1)]");
  EXPECT_EQ(PrintEscapeHatch(*ParseEscapeHatch(text.parser, "l3")), "#[l0::fast]");
  EXPECT_FALSE(ParseEscapeHatch(text.parser, "l3").has_value());
  EXPECT_EQ(text.Message(), "an annotation of l3 is for a layer below it; l3 is none");
  EXPECT_TRUE(text.parser.AtWord("y"));
}

TEST(ParserTest, RangesOfAFile) {
  const SourceFile source("test", "abc (d e) f");
  Diagnostics diagnostics(&source);
  ParserBase parser(source, diagnostics, {5, 8});
  EXPECT_TRUE(parser.AcceptWord("d"));
  EXPECT_EQ(source.Position(parser.Here()).column, 8u);
  EXPECT_TRUE(parser.AcceptWord("e"));
  EXPECT_TRUE(parser.AtEnd());
}

}  // namespace
}  // namespace l3c::support
