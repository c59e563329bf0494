#include "layers/support/lexer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "layers/support/escape_hatch.h"

namespace l3c::support {
namespace {

std::vector<std::string> Texts(const std::string& text) {
  const SourceFile source("test", text);
  Diagnostics diagnostics(&source);
  Lexer lexer(source, diagnostics);
  std::vector<std::string> texts;
  for (Token token = lexer.Next(); token.kind != TokenKind::kEnd; token = lexer.Next()) {
    texts.emplace_back(token.text);
  }
  EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.Render(false);
  return texts;
}

using Strings = std::vector<std::string>;

TEST(LexerTest, NumbersKeepTheirUnits) {
  EXPECT_EQ(Texts("500K 32GB 2GB/s 3e-4 10ms 0x4000 1.0 1e-4"),
            (Strings{"500K", "32GB", "2GB/s", "3e-4", "10ms", "0x4000", "1.0", "1e-4"}));
  EXPECT_EQ(Texts("2/s 2GB/size 1..3 1.x load.4"),
            (Strings{"2", "/", "s", "2GB", "/", "size", "1", "..", "3", "1", ".", "x", "load", ".",
                     "4"}));
  EXPECT_EQ(Texts("-3 5-4 1e+5 1e"), (Strings{"-", "3", "5", "-", "4", "1e+5", "1e"}));
}

TEST(LexerTest, LongestPunctuationWins) {
  EXPECT_EQ(Texts("a<->b->c::d=e==f|g||h@i buf<ram_0> -> x"),
            (Strings{"a", "<->", "b", "->", "c", "::",  "d", "=",     "e", "==", "f", "|",
                     "g", "||",  "h", "@",  "i", "buf", "<", "ram_0", ">", "->", "x"}));
}

TEST(LexerTest, CommentsAndEscapeHatches) {
  EXPECT_EQ(Texts("a // b\n# c\nd #[l2::x] # [no\n#"),
            (Strings{"a", "d", "#[", "l2", "::", "x", "]"}));
}

TEST(LexerTest, Strings) {
  EXPECT_EQ(Texts(R"("a \"b\" // c" d)"), (Strings{R"("a \"b\" // c")", "d"}));
  EXPECT_EQ(Unquote(R"("a \"b\"\n")"), "a \"b\"\n");
  EXPECT_EQ(Quote("a \"b\"\n\\"), R"("a \"b\"\n\\")");
}

TEST(LexerTest, FirstOnLine) {
  const SourceFile source("test", "a b\n  c // d\n\te");
  Diagnostics diagnostics(&source);
  Lexer lexer(source, diagnostics);
  std::string first;
  for (Token token = lexer.Next(); token.kind != TokenKind::kEnd; token = lexer.Next()) {
    if (token.first_on_line) first += token.text;
  }
  EXPECT_EQ(first, "ace");
}

TEST(LexerTest, Header) {
  const SourceFile with("test", "# l3c l2 v1\ndata x {}");
  ASSERT_TRUE(FindHeader(with).has_value());
  EXPECT_EQ(FindHeader(with)->layer, "l2");
  EXPECT_EQ(FindHeader(with)->version, 1);
  EXPECT_EQ(HeaderLine("l2"), "# l3c l2 v1\n");
  EXPECT_FALSE(FindHeader(SourceFile("test", "# another comment\n")).has_value());
  EXPECT_FALSE(FindHeader(SourceFile("test", "# l3c l2 vx\n")).has_value());
  EXPECT_FALSE(FindHeader(SourceFile("test", "")).has_value());
}

TEST(LexerTest, StrayCharactersAreReportedOncePerRun) {
  const SourceFile source("test", "a λλλ b \"open\nc");
  Diagnostics diagnostics(&source);
  Lexer lexer(source, diagnostics);
  while (lexer.Next().kind != TokenKind::kEnd) {
  }
  ASSERT_EQ(diagnostics.all().size(), 2u);
  EXPECT_EQ(diagnostics.all()[0].message, "unexpected 'λλλ'");
  EXPECT_EQ(diagnostics.all()[1].message, "a string is not closed on its line");
}

TEST(LexerTest, BinaryIsNotText) {
  const auto refuse = [](std::string text) {
    const SourceFile source("test", std::move(text));
    Diagnostics diagnostics(&source);
    EXPECT_FALSE(CheckIsText(source, diagnostics));
    EXPECT_EQ(diagnostics.all().size(), 1u);
    EXPECT_FALSE(diagnostics.Render(false).empty());
    return diagnostics.all().empty() ? "" : diagnostics.all()[0].message;
  };
  EXPECT_EQ(refuse(std::string("da\0ta", 5)), "not a text file: byte 0x00 is a control character");
  EXPECT_EQ(refuse("caf\xE9"), "not a text file: byte 0xE9 is not valid UTF-8");
  EXPECT_EQ(refuse("\xED\xA0\x80"), "not a text file: byte 0xED is not valid UTF-8");
  EXPECT_EQ(refuse(std::string(SourceFile::kMaxBytes + 1, ' ')),
            "'test' is larger than 8 MiB, the bound on a source file");
}

TEST(LexerTest, CanonicalSpacing) {
  EXPECT_EQ(CanonicalSpacing("evolution ( pop : 50,sigma:1e-2 )"),
            "evolution(pop: 50, sigma: 1e-2)");
  EXPECT_EQ(CanonicalSpacing("a+b*-3 - 4, [ 1,2 ], p = 1, x . y"),
            "a + b * -3 - 4, [1, 2], p=1, x.y");
  EXPECT_EQ(CanonicalSpacing("0 . 5 ; : :"), "0 .5;: :");
  for (const char* text :
       {"a+b*-3 - 4", "f ( x ) [ 1 ]", "{ a : 1 }", "a -> b <-> c", "! x == - y"}) {
    const std::string once = CanonicalSpacing(text);
    EXPECT_EQ(CanonicalSpacing(once), once);
  }
}

}  // namespace
}  // namespace l3c::support
