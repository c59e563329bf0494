// Golden diagnostics: tests/errors/l1/ROW_CASE.l1 is refused with exactly the text beside it;
// ROW_valid.l1 is the neighbour of its row that must pass.
#include "tests/errors/recorded.h"

#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

namespace fs = std::filesystem;

bool Valid(const fs::path& file) { return file.stem().string().ends_with("_valid"); }

std::vector<fs::path> Broken() {
  std::vector<fs::path> files = recorded::Files("l1", ".l1");
  std::erase_if(files, Valid);
  return files;
}

std::string Diagnose(const fs::path& path) {
  const support::SourceFile source(path.filename().string(), recorded::ReadFile(path));
  support::Diagnostics diagnostics(&source);
  const auto program = ParseProgram(source, diagnostics);
  if (program) Verify(*program, diagnostics);
  return diagnostics.Render(false);
}

TEST(L1ErrorsTest, EveryCaseIsRefusedAsRecorded) {
  for (const fs::path& path : Broken()) {
    fs::path golden = path;
    golden.replace_extension(".txt");
    recorded::Expect(Diagnose(path), golden);
  }
}

// The verifier's table: each row has at least two cases that break it and one that does not.
TEST(L1ErrorsTest, EveryRowOfTheTableIsCovered) {
  const std::set<std::string> rows = {"topology", "references", "forward",      "window",
                                      "shape",    "region",     "conservation", "reachability",
                                      "memory",   "finite"};
  recorded::ExpectRowsBrokenTwice(Broken(), rows);
  std::set<std::string> valid;
  for (const fs::path& path : recorded::Files("l1", "_valid.l1")) {
    EXPECT_EQ(Diagnose(path), "") << path;
    valid.insert(recorded::Row(path));
  }
  for (const std::string& row : rows) EXPECT_TRUE(valid.contains(row)) << row;
}

}  // namespace
}  // namespace l3c::l1
