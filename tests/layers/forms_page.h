// The rows of docs/forms.md, which each language's test holds against its parser's tables.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace l3c::forms_page {

struct Row {
  std::string form, example, test;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// By section: "L2: layers" → its rows.
inline std::map<std::string, std::vector<Row>> Rows() {
  std::map<std::string, std::vector<Row>> rows;
  const std::filesystem::path root = L3C_SOURCE_DIR;
  std::istringstream lines(ReadFile(root / "docs/forms.md"));
  const std::regex row(R"(^\| `([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \| (\S+) \|$)");
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("## ")) section = line.substr(3);
    if (std::regex_match(line, match, row)) rows[section].push_back({match[1], match[2], match[3]});
  }
  return rows;
}

// The example uses the form, and the test is there.
inline void Check(const Row& row) {
  const std::filesystem::path root = L3C_SOURCE_DIR;
  const std::string example = ReadFile(root / "docs" / row.example);
  EXPECT_TRUE(std::regex_search(example, std::regex("\\b" + row.form + "\\b")))
      << row.example << " does not use " << row.form;
  EXPECT_TRUE(std::filesystem::exists(root / row.test)) << row.test;
}

}  // namespace l3c::forms_page
