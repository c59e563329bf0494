// Golden diagnostics: every tests/errors/l3/NAME.l3 is refused with exactly the text beside it,
// NAME.diag, and its valid neighbour NAME.ok.l3, one edit away, is accepted.
#include "tests/errors/recorded.h"

#include "layers/l3/parse.h"
#include "layers/l3/verify.h"

namespace l3c::l3 {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Files(bool valid) {
  std::vector<fs::path> files = recorded::Files("l3", valid ? ".ok.l3" : ".l3");
  if (!valid) {
    std::erase_if(files, [](const fs::path& path) { return path.string().ends_with(".ok.l3"); });
  }
  return files;
}

std::string Diagnose(const fs::path& path) {
  const support::SourceFile source(path.filename().string(), recorded::ReadFile(path));
  support::Diagnostics diagnostics(&source);
  const auto module = Parse(source, diagnostics);
  if (module) Verify(*module, diagnostics);
  return diagnostics.Render(false);
}

TEST(L3ErrorsTest, DiagnosticsAreAsRecorded) {
  const auto files = Files(false);
  EXPECT_GE(files.size(), 20u);
  for (fs::path path : files) {
    fs::path golden = path;
    golden.replace_extension(".diag");
    recorded::Expect(Diagnose(path), golden);
    fs::path neighbour = path;
    neighbour.replace_extension(".ok.l3");
    EXPECT_TRUE(fs::exists(neighbour)) << path << " has no valid neighbour";
  }
}

TEST(L3ErrorsTest, ValidNeighboursAreAccepted) {
  for (const fs::path& path : Files(true)) EXPECT_EQ(Diagnose(path), "") << path;
}

// The row that a file breaks is the first part of its name.
TEST(L3ErrorsTest, EveryRowOfTheTableIsBrokenTwice) {
  const std::map<std::string, std::string> kinds = {
      {"reference", "safety"},       {"signature", "safety"},          {"domain", "consistency"},
      {"constraint", "consistency"}, {"finiteness", "resource-bound"}, {"syntax", "syntax"}};
  for (const fs::path& path : Files(false)) {
    const std::string row = recorded::Row(path);
    ASSERT_EQ(kinds.count(row), 1u) << path;
    EXPECT_NE(Diagnose(path).find("error[" + kinds.at(row) + "]"), std::string::npos) << path;
  }
  std::set<std::string> rows;
  for (const auto& [row, kind] : kinds) rows.insert(row);
  recorded::ExpectRowsBrokenTwice(Files(false), rows);
}

}  // namespace
}  // namespace l3c::l3
