// Golden diagnostics: how the texts under tests/errors are compared, written anew and counted.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace l3c::recorded {

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The files of tests/errors/LAYER whose names end like that, in order.
inline std::vector<std::filesystem::path> Files(const std::string& layer, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(L3C_SOURCE_DIR) / "tests/errors" / layer;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// `report` is what is recorded in `golden`, and something. L3C_REGENERATE=1 records it.
inline void Expect(const std::string& report, const std::filesystem::path& golden) {
  EXPECT_NE(report, "") << golden;
  if (std::getenv("L3C_REGENERATE") != nullptr) {
    std::ofstream(golden, std::ios::binary) << report;
  }
  EXPECT_EQ(report, ReadFile(golden));
}

// What a file breaks is the first part of its name.
inline std::string Row(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  return stem.substr(0, stem.find('_'));
}

// Each row of a verifier's table is broken by two files at least.
inline void ExpectRowsBrokenTwice(const std::vector<std::filesystem::path>& broken,
                                  const std::set<std::string>& rows) {
  std::map<std::string, int> count;
  for (const auto& file : broken) ++count[Row(file)];
  for (const std::string& row : rows) EXPECT_GE(count[row], 2) << row;
}

}  // namespace l3c::recorded
