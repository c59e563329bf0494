#include "tests/errors/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace l3c::testing {
namespace {

namespace fs = std::filesystem;

fs::path Folder(const std::string& layer) {
  return fs::path(L3C_SOURCE_DIR) / "tests/errors" / layer;
}

std::string Read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string StemOf(const GoldenCase& program) { return fs::path(program.name).stem().string(); }

}  // namespace

std::vector<GoldenCase> GoldenCases(const std::string& layer) {
  std::vector<GoldenCase> cases;
  for (const auto& entry : fs::directory_iterator(Folder(layer))) {
    if (entry.path().extension() != "." + layer) continue;
    cases.push_back({entry.path().filename().string(), Read(entry.path())});
  }
  std::sort(cases.begin(), cases.end(),
            [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  return cases;
}

void ExpectAsRecorded(const std::string& layer, const std::vector<GoldenCase>& cases,
                      const Diagnose& diagnose) {
  for (const GoldenCase& program : cases) {
    const std::string found = diagnose(program);
    if (StemOf(program).ends_with("_valid")) {
      EXPECT_EQ(found, "") << program.name;
      continue;
    }
    const fs::path golden = Folder(layer) / (StemOf(program) + ".txt");
    if (std::getenv("L3C_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << found;
    EXPECT_NE(found, "") << program.name;
    EXPECT_EQ(found, Read(golden)) << program.name;
  }
}

void ExpectRowsCovered(const std::vector<GoldenCase>& cases,
                       const std::vector<std::string_view>& rows, bool neighbours) {
  std::map<std::string, int, std::less<>> broken;
  std::set<std::string, std::less<>> valid;
  for (const GoldenCase& program : cases) {
    const std::string stem = StemOf(program);
    const std::string row = stem.substr(0, stem.find('_'));
    if (stem.ends_with("_valid")) {
      valid.insert(row);
    } else {
      ++broken[row];
    }
  }
  for (const std::string_view row : rows) {
    EXPECT_GE(broken[std::string(row)], 2) << row;
    EXPECT_TRUE(!neighbours || valid.contains(row)) << row;
  }
}

}  // namespace l3c::testing
