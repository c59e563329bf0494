// Golden diagnostics: tests/errors/l0/ROW_CASE.l0 is refused with exactly the text beside it, and
// ROW_valid.l0, one edit away, passes. L3C_UPDATE_GOLDEN=1 writes the texts anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"

namespace l3c::l0 {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(L3C_SOURCE_DIR) / "tests/errors/l0";

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".l0") cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::string Read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Diagnose(const fs::path& path) {
  const support::SourceFile source(path.filename().string(), Read(path));
  support::Diagnostics diagnostics(&source);
  const auto plan = ParsePlan(source, diagnostics);
  if (plan) VerifyPlan(*plan, diagnostics);
  return diagnostics.Render(false);
}

TEST(L0Errors, EveryCaseIsRefusedAsRecorded) {
  for (const fs::path& path : Cases()) {
    const std::string text = Diagnose(path);
    if (path.stem().string().ends_with("_valid")) {
      EXPECT_EQ(text, "") << path;
      continue;
    }
    fs::path golden = path;
    golden.replace_extension(".txt");
    if (std::getenv("L3C_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << text;
    EXPECT_NE(text, "") << path;
    EXPECT_EQ(text, Read(golden)) << path;
  }
}

// The table of the concrete verifier: each row has at least two plans that break it and one that
// does not.
TEST(L0Errors, EveryRowOfTheTableIsCovered) {
  std::map<std::string, int> broken;
  std::set<std::string> valid;
  for (const fs::path& path : Cases()) {
    const std::string stem = path.stem().string();
    const std::string row = stem.substr(0, stem.find('_'));
    if (stem.ends_with("_valid")) {
      valid.insert(row);
    } else {
      ++broken[row];
    }
  }
  for (const char* row : {"kernel", "lifetime", "hazard", "sync", "capacity", "headroom"}) {
    EXPECT_GE(broken[row], 2) << row;
    EXPECT_TRUE(valid.contains(row)) << row;
  }
}

}  // namespace
}  // namespace l3c::l0
