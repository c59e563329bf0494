// Golden diagnostics: tests/errors/l2/NAME.l2 breaks one row of the verifier's table, NAME.txt is
// what must be reported; valid_NAME.l2, or else valid_ROW.l2, is one edit away and reports nothing.
#include "tests/errors/recorded.h"

#include <utility>

#include "tests/layers/l2/testing.h"

namespace l3c::l2 {
namespace {

namespace fs = std::filesystem;

using recorded::ReadFile;

std::vector<fs::path> Files() { return recorded::Files("l2", ".l2"); }

TEST(L2Errors, AreReportedAsRecorded) {
  for (const fs::path& file : Files()) {
    const std::string found = testing::Errors(ReadFile(file), file.filename().string());
    if (file.filename().string().starts_with("valid_")) {
      EXPECT_EQ(found, "") << file;
      continue;
    }
    fs::path golden = file;
    golden.replace_extension(".txt");
    recorded::Expect(found, golden);
  }
}

// The rows, and what their breach is called; "": nothing in particular.
const std::map<std::string, std::string> kRows = {
    {"shapes", "consistency"},   {"constraints", "consistency"},
    {"backward", "consistency"}, {"update", "consistency"},
    {"sample", "consistency"},   {"finite", "resource-bound"},
    {"references", "safety"},    {"syntax", ""}};

// A file that comes to break something else no longer tests its row. Bounds of an argument are
// finiteness wherever they stand.
TEST(L2Errors, EachBreaksItsOwnRow) {
  for (const fs::path& file : Files()) {
    const std::string name = file.stem().string();
    if (name.starts_with("valid_") || name == "sample_zero") continue;
    const std::string& kind = kRows.at(name.substr(0, name.find('_')));
    const std::string found = testing::Errors(ReadFile(file), file.filename().string());
    EXPECT_NE(found.substr(0, found.find('\n')).find("error[" + kind), std::string::npos) << found;
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
  for (const auto& [row, kind] : kRows) {
    EXPECT_GE(broken[row], 2) << row;
    EXPECT_TRUE(valid.contains(row)) << row;
  }
}

std::vector<std::string> Lines(const fs::path& path) {
  std::stringstream text(ReadFile(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// The fewest lines to take out of `a` and to put in for `b`.
std::pair<size_t, size_t> Difference(const std::vector<std::string>& a,
                                     const std::vector<std::string>& b) {
  std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  return {a.size() - common[0][0], b.size() - common[0][0]};
}

TEST(L2Errors, TheValidNeighbourIsOneEditAway) {
  for (const fs::path& file : Files()) {
    const std::string name = file.stem().string();
    if (name.starts_with("valid_")) continue;
    fs::path valid = file.parent_path() / ("valid_" + name + ".l2");
    if (!fs::exists(valid)) {
      valid = file.parent_path() / ("valid_" + name.substr(0, name.find('_')) + ".l2");
    }
    const auto [out, in] = Difference(Lines(file), Lines(valid));
    // A line or two replaced, or some lines left out or put in.
    EXPECT_TRUE(out + in <= 5 || out == 0 || in == 0) << name << ": " << out << ", " << in;
  }
}

}  // namespace
}  // namespace l3c::l2
