#include <gtest/gtest.h>

#include "egraph/program.h"
#include "tests/egraph/math_workload.h"

namespace l3c::egraph {
namespace {

TEST(MathBenchmark, CountsEveryStep) {
  EGraph graph;
  for (const char* text :
       {math_workload::kLanguage, math_workload::kRules, math_workload::kTerms}) {
    const ProgramResult result = LoadProgram(graph, text, "math.egg");
    ASSERT_TRUE(result.ok()) << result.status.ToString();
  }
  // Two steps more take seconds under a sanitizer; bench/engine/math_bench.cc checks them.
  for (size_t step = 0; step <= 10; ++step) {
    if (step != 0) RunSchedule(graph, Schedule::Run(kDefaultRuleset));
    EXPECT_EQ(graph.NodeCount(), math_workload::kNodes[step]) << "step " << step;
  }
}

// Plans are judged by what they look at: not much more than they find.
TEST(MathBenchmark, LooksAtFewRowsInVain) {
  EGraph graph;
  for (const char* text :
       {math_workload::kLanguage, math_workload::kRules, math_workload::kTerms}) {
    ASSERT_TRUE(LoadProgram(graph, text, "math.egg").ok());
  }
  for (size_t step = 1; step <= 9; ++step) {
    const RunReport report = RunSchedule(graph, Schedule::Run(kDefaultRuleset));
    EXPECT_LE(report.work, 12 * report.matches + 1000) << "step " << step;
  }
}

TEST(MathBenchmark, CallsAddTheSameTermsAsText) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, math_workload::kLanguage, "math.egg").ok());
  math_workload::AddTerms(graph, math_workload::Language(graph));
  EXPECT_EQ(graph.NodeCount(), math_workload::kNodes[0]);
  ASSERT_TRUE(LoadProgram(graph, math_workload::kTerms, "math.egg").ok());
  EXPECT_EQ(graph.NodeCount(), math_workload::kNodes[0]);
}

}  // namespace
}  // namespace l3c::egraph
