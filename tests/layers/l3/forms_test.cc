// docs/forms.md has a row for every form of L3 that the parser knows, with an example that uses it
// and a test that exists.
#include "layers/l3/forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace l3c::l3 {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = L3C_SOURCE_DIR;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(L3Forms, EveryFormHasARowWithAnExampleAndATest) {
  const std::map<std::string, std::vector<std::string>> sections = {
      {"L3: domains", DomainForms()},
      {"L3: properties", PropertyForms()},
      {"L3: losses", LossForms()},
      {"L3: goals", GoalForms()}};
  std::map<std::string, std::vector<std::string>> documented;
  std::istringstream lines(ReadFile(kRoot / "docs/forms.md"));
  const std::regex row(R"(^\| `([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \| (\S+) \|$)");
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("## ")) section = line.substr(3);
    if (!section.starts_with("L3: ") || !std::regex_match(line, match, row)) continue;
    documented[section].push_back(match[1]);
    const std::string example = ReadFile(kRoot / "docs" / match[2].str());
    EXPECT_TRUE(std::regex_search(example, std::regex("\\b" + match[1].str() + "\\b"))) << line;
    EXPECT_TRUE(fs::exists(kRoot / match[3].str())) << line;
  }
  for (const auto& [name, forms] : sections) {
    std::vector<std::string> expected = forms, found = documented[name];
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << "docs/forms.md, section '" << name << "'";
  }
}

}  // namespace
}  // namespace l3c::l3
