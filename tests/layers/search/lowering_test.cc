// What a failed search says.
#include "layers/search/lowering.h"

#include <gtest/gtest.h>

#include <string>

namespace l3c::search {
namespace {

std::string Report(const SearchFailure& failure) {
  const support::SourceFile source("a.l3", "model m { properties: [param_budget(5K)] }\n");
  support::Diagnostics diagnostics(&source);
  ReportFailure(failure, {0, 5}, diagnostics);
  return diagnostics.Render(false);
}

TEST(Lowering, FailuresNameTheirCauseAndTheWayOut) {
  const support::Span budget = {23, 39};
  const std::string none = Report(NoCandidates{"the smallest has 7850", "raise it", budget});
  EXPECT_NE(none.find("a.l3:1:24: error[resource-bound]: NoCandidates: the smallest has 7850"),
            std::string::npos)
      << none;
  EXPECT_NE(none.find("fix: raise it"), std::string::npos) << none;
  const std::string many = Report(TooManyCandidates{20000, "depth(9)", "write depth(8)", {}});
  EXPECT_NE(many.find("a.l3:1:1: error[resource-bound]: TooManyCandidates: 20000"),
            std::string::npos)
      << many;
  EXPECT_NE(many.find("depth(9) is the loosest constraint"), std::string::npos) << many;
  const std::string late = Report(Timeout{11, 10, "extracting", "tighten it"});
  EXPECT_NE(late.find("while extracting: 11 of 10 spent"), std::string::npos) << late;
}

TEST(Lowering, ModesAreReadAsTheyArePrinted) {
  for (Mode mode : {Mode::kOff, Mode::kGreedy, Mode::kEGraph}) {
    EXPECT_EQ(ParseMode(ModeName(mode)), mode);
  }
  EXPECT_FALSE(ParseMode("fast").has_value());
}

TEST(Lowering, FailuresHaveNames) {
  EXPECT_EQ(FailureName(NoCandidates{}), "NoCandidates");
  EXPECT_EQ(FailureName(TooManyCandidates{}), "TooManyCandidates");
  EXPECT_EQ(FailureName(Timeout{}), "Timeout");
}

}  // namespace
}  // namespace l3c::search
