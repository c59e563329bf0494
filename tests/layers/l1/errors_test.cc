// Golden diagnostics of L1: ROW_valid.l1 is the neighbour of its row that must pass.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/errors/golden.h"
#include "tests/layers/l1/fixtures.h"

namespace l3c::l1 {
namespace {

using testing::GoldenCase;

std::string Diagnose(const GoldenCase& program) {
  const support::SourceFile source(program.name, program.text);
  support::Diagnostics diagnostics(&source);
  const auto parsed = ParseProgram(source, diagnostics);
  if (parsed) Verify(*parsed, diagnostics);
  return diagnostics.Render(false);
}

// A system of more nodes than there may be.
GoldenCase Crowd() {
  std::string text = "system crowd {\n";
  for (int n = 0; n < 4098; ++n) {
    text += "    node n" + std::to_string(n) + " { kind: storage }\n";
  }
  return {"memory_nodes.l1", text + "}\n"};
}

std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases = testing::GoldenCases("l1");
  cases.push_back(Crowd());
  return cases;
}

TEST(L1ErrorsTest, EveryCaseIsRefusedAsRecorded) {
  testing::ExpectAsRecorded("l1", Cases(), Diagnose);
}

// The verifier's table: each row has at least two cases that break it and one that does not.
TEST(L1ErrorsTest, EveryRowOfTheTableIsCovered) {
  testing::ExpectRowsCovered(Cases(),
                             {"topology", "references", "forward", "window", "shape", "region",
                              "conservation", "reachability", "memory", "finite"},
                             /*neighbours=*/true);
}

}  // namespace
}  // namespace l3c::l1
