// docs/forms.md has a row for every form of the parser's own tables, with an example that uses the
// form and a test that exists.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "layers/l2/form.h"

namespace l3c::l2 {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = L3C_SOURCE_DIR;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Row {
  std::string form, example, test;
};

// By section: "L2: layers" → its rows.
std::map<std::string, std::vector<Row>> Rows() {
  std::map<std::string, std::vector<Row>> rows;
  std::istringstream lines(ReadFile(kRoot / "docs/forms.md"));
  const std::regex row(R"(^\| `([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \| (\S+) \|$)");
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("## ")) section = line.substr(3);
    if (std::regex_match(line, match, row)) rows[section].push_back({match[1], match[2], match[3]});
  }
  return rows;
}

TEST(L2Forms, EveryFormHasARow) {
  const std::map<std::string, Family> sections = {{"L2: sample methods", Family::kSample},
                                                  {"L2: layers", Family::kLayer},
                                                  {"L2: infer methods", Family::kInfer},
                                                  {"L2: norms", Family::kNorm},
                                                  {"L2: backward methods", Family::kBackward},
                                                  {"L2: updates", Family::kUpdate},
                                                  {"L2: losses", Family::kLoss}};
  const auto rows = Rows();
  for (const auto& [section, family] : sections) {
    ASSERT_TRUE(rows.contains(section)) << section;
    std::vector<std::string> documented;
    for (const Row& row : rows.at(section)) documented.push_back(row.form);
    for (const std::string& name : EntryNames(family)) {
      if (name.starts_with("test_")) continue;  // registered by another test
      EXPECT_NE(std::find(documented.begin(), documented.end(), name), documented.end())
          << "docs/forms.md, section '" << section << "', lacks a row for `" << name << "`";
    }
    for (const std::string& name : documented) {
      // The two brackets of the grammar, which have no entry.
      if (name == "sequential" || name == "residual") continue;
      EXPECT_NE(FindEntry(family, name), nullptr)
          << section << ": there is no form `" << name << "`";
    }
  }
}

TEST(L2Forms, ExamplesUseTheirFormAndTestsExist) {
  for (const auto& [section, rows] : Rows()) {
    if (!section.starts_with("L2: ")) continue;
    for (const Row& row : rows) {
      const std::string example = ReadFile(kRoot / "docs" / row.example);
      const std::regex word("\\b" + row.form + "\\b");
      EXPECT_TRUE(std::regex_search(example, word)) << row.example << " does not use " << row.form;
      EXPECT_TRUE(fs::exists(kRoot / row.test)) << row.test;
    }
  }
}

}  // namespace
}  // namespace l3c::l2
