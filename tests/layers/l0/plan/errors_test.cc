// Golden diagnostics of plans: each case of tests/errors/l0 is linear.l0 with one edit.
#include <string>

#include "gtest/gtest.h"
#include "layers/l0/plan_text.h"
#include "layers/l0/plan_verify.h"
#include "tests/errors/golden.h"
#include "tests/layers/l0/plan/linear.h"

namespace l3c::l0 {
namespace {

std::string Diagnose(const l3c::testing::GoldenCase& program) {
  const support::SourceFile source(program.name, program.text);
  support::Diagnostics diagnostics(&source);
  const auto plan = ParsePlan(source, diagnostics);
  if (plan) VerifyPlan(*plan, diagnostics);
  return diagnostics.Render(false);
}

TEST(L0Errors, EveryCaseIsRefusedAsRecorded) {
  l3c::testing::ExpectAsRecorded("l0", l3c::testing::GoldenCases("l0"), Diagnose);
}

// The table of the concrete verifier: each row has at least two plans that break it; the neighbour
// of all of them does not.
TEST(L0Errors, EveryRowOfTheTableIsCovered) {
  l3c::testing::ExpectRowsCovered(l3c::testing::GoldenCases("l0"),
                                  {"kernel", "lifetime", "hazard", "sync", "capacity", "headroom"},
                                  /*neighbours=*/false);
  EXPECT_EQ(Diagnose({"linear.l0", testing::LinearText()}), "");
}

}  // namespace
}  // namespace l3c::l0
