// Golden diagnostics: tests/errors/l2/NAME.l2 breaks one row of the verifier's table, NAME.txt is
// what must be reported; a file valid_*.l2 is one edit away and reports nothing.
//
//   L3C_UPDATE_GOLDEN=1 l2_test --gtest_filter='L2Errors.*'     writes the .txt files anew
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> Files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(L3C_SOURCE_DIR) / "tests/errors/l2")) {
    if (entry.path().extension() == ".l2") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(L2Errors, AreReportedAsRecorded) {
  const bool update = std::getenv("L3C_UPDATE_GOLDEN") != nullptr;
  for (const fs::path& file : Files()) {
    const std::string found = testing::Errors(ReadFile(file), file.filename().string());
    if (file.filename().string().starts_with("valid_")) {
      EXPECT_EQ(found, "") << file;
      continue;
    }
    EXPECT_NE(found, "") << file;
    fs::path golden = file;
    golden.replace_extension(".txt");
    if (update) std::ofstream(golden, std::ios::binary) << found;
    EXPECT_EQ(found, ReadFile(golden)) << file;
  }
}

// Names are ROW_what.l2: each row has two breaking files and a valid neighbour.
TEST(L2Errors, EveryRowIsCovered) {
  std::map<std::string, int> broken;
  std::set<std::string> valid;
  for (const fs::path& file : Files()) {
    const std::string name = file.stem().string();
    if (name.starts_with("valid_")) {
      valid.insert(name.substr(6));
    } else {
      ++broken[name.substr(0, name.find('_'))];
    }
  }
  for (const char* row : {"shapes", "constraints", "backward", "update", "sample", "finite",
                          "references", "syntax"}) {
    EXPECT_GE(broken[row], 2) << row;
    EXPECT_TRUE(valid.contains(row)) << row;
  }
}

}  // namespace
}  // namespace l3c::l2
