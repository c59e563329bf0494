// Golden diagnostics: every tests/errors/l3/NAME.l3 is refused with exactly the text beside it,
// NAME.diag, and its valid neighbour NAME.ok.l3, one edit away, is accepted.
//
// After a change of wording, regenerate the .diag files and read the difference:
//   L3C_REGENERATE=1 build/release/bin/l3_test --gtest_filter='L3ErrorsTest.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "layers/l3/parse.h"
#include "layers/l3/verify.h"

namespace l3c::l3 {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(L3C_SOURCE_DIR) / "tests" / "errors" / "l3";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<fs::path> Files(bool valid) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (EndsWith(name, ".l3") && EndsWith(name, ".ok.l3") == valid) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Diagnose(const fs::path& path) {
  const support::SourceFile source(path.filename().string(), ReadFile(path));
  support::Diagnostics diagnostics(&source);
  const auto module = Parse(source, diagnostics);
  if (module) Verify(*module, diagnostics);
  return diagnostics.Render(false);
}

TEST(L3ErrorsTest, DiagnosticsAreAsRecorded) {
  const auto files = Files(false);
  EXPECT_GE(files.size(), 20u);
  for (fs::path path : files) {
    const std::string report = Diagnose(path);
    EXPECT_FALSE(report.empty()) << path;
    fs::path golden = path;
    golden.replace_extension(".diag");
    if (std::getenv("L3C_REGENERATE") != nullptr) {
      std::ofstream(golden) << report;
    } else {
      EXPECT_EQ(report, ReadFile(golden)) << path;
    }
    const std::string stem = path.stem().string();
    EXPECT_TRUE(fs::exists(kFolder / (stem + ".ok.l3"))) << stem << " has no valid neighbour";
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
  std::map<std::string, int> broken;
  for (const fs::path& path : Files(false)) {
    const std::string name = path.filename().string();
    const std::string row = name.substr(0, name.find('_'));
    ASSERT_EQ(kinds.count(row), 1u) << name;
    EXPECT_NE(Diagnose(path).find("error[" + kinds.at(row) + "]"), std::string::npos) << name;
    ++broken[row];
  }
  for (const auto& [row, kind] : kinds) EXPECT_GE(broken[row], 2) << row;
}

}  // namespace
}  // namespace l3c::l3
