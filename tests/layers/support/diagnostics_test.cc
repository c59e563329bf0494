#include "layers/support/diagnostics.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "layers/support/source.h"

namespace l3c::support {
namespace {

Span Find(const SourceFile& source, std::string_view text) {
  const auto at = static_cast<uint32_t>(source.text().find(text));
  return {at, at + static_cast<uint32_t>(text.size())};
}

TEST(SourceFileTest, LinesAndColumns) {
  const SourceFile source("a.l3", "ab\r\ncd\n\nx");
  EXPECT_EQ(source.Line(1), "ab");
  EXPECT_EQ(source.Line(2), "cd");
  EXPECT_EQ(source.Line(3), "");
  EXPECT_EQ(source.Line(4), "x");
  EXPECT_EQ(source.Line(5), "");
  EXPECT_EQ(source.Line(0), "");
  EXPECT_EQ(source.Position(5).line, 2u);
  EXPECT_EQ(source.Position(5).column, 2u);
  EXPECT_EQ(source.Slice({4, 6}), "cd");
  EXPECT_EQ(source.Slice({100, 200}), "");
}

TEST(SourceFileTest, ColumnsCountCharacters) {
  const SourceFile source("t", "a\n\tä漢😀x");
  const auto x = static_cast<uint32_t>(source.text().find('x'));
  EXPECT_EQ(source.Position(x).line, 2u);
  EXPECT_EQ(source.Position(x).column, 5u);
}

TEST(SourceFileTest, AByteOrderMarkIsNoText) {
  const SourceFile source("t", "\xEF\xBB\xBF# l3c");
  EXPECT_EQ(source.text(), "# l3c");
  EXPECT_EQ(source.Position(2).column, 3u);
  EXPECT_EQ(SourceFile("t", "\xEF\xBB").text(), "\xEF\xBB");
}

TEST(SourceFileTest, ReadReportsWhy) {
  Diagnostics diagnostics;
  EXPECT_FALSE(SourceFile::Read("/nonexistent/x.l3", diagnostics).has_value());
  EXPECT_FALSE(SourceFile::Read("/tmp", diagnostics).has_value());
  EXPECT_EQ(diagnostics.Render(false),
            "error[environment]: cannot read '/nonexistent/x.l3': No such file or directory\n"
            "error[environment]: cannot read '/tmp': it is a folder\n");

  // A pipe without a writer would be waited for.
  const std::string pipe = ::testing::TempDir() + "/pipe.l3";
  std::remove(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Diagnostics waiting;
  EXPECT_FALSE(SourceFile::Read(pipe, waiting).has_value());
  EXPECT_FALSE(SourceFile::Read("/dev/zero", waiting).has_value());
  std::remove(pipe.c_str());
  EXPECT_EQ(waiting.Render(false), "error[environment]: cannot read '" + pipe +
                                       "': it is not a regular file\n"
                                       "error[environment]: cannot read '/dev/zero': it is not a "
                                       "regular file\n");

  const std::string path = ::testing::TempDir() + "/garbage.l3";
  std::ofstream(path) << std::string(10'000'000, 'x');
  Diagnostics large;
  EXPECT_FALSE(SourceFile::Read(path, large).has_value());
  EXPECT_EQ(large.all()[0].kind, Kind::kResourceBound);
}

TEST(DiagnosticsTest, RendersSnippetsNotesAndFixes) {
  const SourceFile source("m.l3", "data mnist {\n    images : x\n}\n  in: mnist.imagse\n");
  Diagnostics diagnostics(&source);
  diagnostics.Error(Kind::kSafety, Find(source, "imagse"), "unknown field 'imagse' of 'mnist'")
      .Label("expected a field of data 'mnist'")
      .With({Find(source, "images"), "'images' is declared here"})
      .Fix("replace with 'images'");
  EXPECT_EQ(diagnostics.Render(false),
            "m.l3:4:13: error[safety]: unknown field 'imagse' of 'mnist'\n"
            "     4 |   in: mnist.imagse\n"
            "       |             ^~~~~~ expected a field of data 'mnist'\n"
            "note: m.l3:2:5: 'images' is declared here\n"
            "     2 |     images : x\n"
            "       |     ^~~~~~\n"
            "fix: replace with 'images'\n");
  EXPECT_NE(diagnostics.Render(true).find("\033["), std::string::npos);
}

TEST(DiagnosticsTest, TabsWideCharactersAndControlsKeepTheCaretInPlace) {
  const SourceFile source("t", "\tä漢\x01x bad");
  Diagnostics diagnostics(&source);
  diagnostics.Error(Kind::kSyntax, Find(source, "bad"), "m");
  EXPECT_EQ(diagnostics.Render(false),
            "t:1:7: error[syntax]: m\n"
            "     1 |     ä漢<01>x bad\n"
            "       |              ^~~\n");
}

TEST(DiagnosticsTest, LongLinesAreCutAroundTheCaret) {
  const SourceFile source("t", std::string(5'000'000, 'a') + " bad " + std::string(100'000, 'b'));
  Diagnostics diagnostics(&source);
  diagnostics.Error(Kind::kSyntax, Find(source, "bad"), "m").Label("here");
  const std::string text = diagnostics.Render(false);
  EXPECT_LT(text.size(), 400u);
  const size_t line = text.find("| ") + 2, underline = text.find("| ", line) + 2;
  // The ellipsis is three bytes but one column.
  EXPECT_EQ(text.find("bad") - line - 2, text.find('^') - underline);
}

TEST(DiagnosticsTest, SpanOverSeveralLinesUnderlinesTheFirst) {
  const SourceFile source("t", "abc\ndef\n");
  Diagnostics diagnostics(&source);
  diagnostics.Error(Kind::kSyntax, {1, 6}, "m");
  EXPECT_NE(diagnostics.Render(false).find("|  ^~\n"), std::string::npos);
}

TEST(DiagnosticsTest, SuppressesAfterTwenty) {
  Diagnostics diagnostics;
  for (int i = 0; i < 25; ++i) diagnostics.Error(Kind::kSyntax, {}, "m").Label("l");
  EXPECT_EQ(diagnostics.all().size(), 20u);
  EXPECT_NE(diagnostics.Render(false).find("5 more errors not shown\n"), std::string::npos);
}

TEST(DiagnosticsTest, Sarif) {
  const SourceFile source("m.l3", "ä bad\n\xFF");
  Diagnostics diagnostics(&source);
  diagnostics.Error(Kind::kLiveness, Find(source, "bad"), "never freed \xFF")
      .With({{}, "a note without a place"})
      .Fix("free it");
  const auto document = nlohmann::json::parse(diagnostics.RenderSarif());
  EXPECT_EQ(document["version"], "2.1.0");
  const auto& run = document["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "l3c");
  const auto& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "liveness");
  EXPECT_EQ(run["tool"]["driver"]["rules"][result["ruleIndex"].get<size_t>()]["id"], "liveness");
  const auto& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "m.l3");
  EXPECT_EQ(place["region"]["startLine"], 1);
  EXPECT_EQ(place["region"]["startColumn"], 3);
  EXPECT_EQ(place["region"]["endColumn"], 6);
  EXPECT_EQ(result["relatedLocations"][0]["message"]["text"], "a note without a place");
  EXPECT_EQ(result["properties"]["fix"], "free it");
}

TEST(ClosestMatchTest, SuggestsWhatIsNear) {
  EXPECT_EQ(ClosestMatch("imagse", {"labels", "images"}), "images");
  EXPECT_EQ(ClosestMatch("Depth", {"width", "depth"}), "depth");
  EXPECT_EQ(ClosestMatch("divergance", {"divergence", "norm"}), "divergence");
  EXPECT_EQ(ClosestMatch("x", {"images", "y"}), "");
  EXPECT_EQ(ClosestMatch("", {"images"}), "");
  EXPECT_EQ(ClosestMatch(std::string(1 << 20, 'a'), {"images"}), "");
}

}  // namespace
}  // namespace l3c::support
