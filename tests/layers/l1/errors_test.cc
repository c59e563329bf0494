// Golden diagnostics: tests/errors/l1/ROW_CASE.l1 is refused with exactly the text beside it;
// ROW_valid.l1 is the neighbour of its row that must pass. L3C_UPDATE_GOLDEN=1 writes the texts
// anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(fs::path(L3C_SOURCE_DIR) / "tests/errors/l1")) {
    if (entry.path().extension() == ".l1") cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::string Diagnose(const fs::path& path) {
  const support::SourceFile source(path.filename().string(),
                                   ReadText("tests/errors/l1/" + path.filename().string()));
  support::Diagnostics diagnostics(&source);
  const auto program = ParseProgram(source, diagnostics);
  if (program) Verify(*program, diagnostics);
  return diagnostics.Render(false);
}

TEST(L1ErrorsTest, EveryCaseIsRefusedAsRecorded) {
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
    EXPECT_EQ(text, ReadText("tests/errors/l1/" + golden.filename().string())) << path;
  }
}

// The verifier's table: each row has at least two cases that break it and one that does not.
TEST(L1ErrorsTest, EveryRowOfTheTableIsCovered) {
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
  for (const char* row : {"topology", "references", "forward", "window", "shape", "region",
                          "conservation", "reachability", "memory", "finite"}) {
    EXPECT_GE(broken[row], 2) << row;
    EXPECT_TRUE(valid.contains(row)) << row;
  }
}

}  // namespace
}  // namespace l3c::l1
