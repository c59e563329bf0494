// The engine against an engine without cleverness (naive.h), on random programs.
//
//   differential_test [--seconds=S] [--first=SEED]    S: how long to look (default: 4)
//
// A failure names its seed and prints the program.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "egraph/program.h"
#include "tests/egraph/naive.h"
#include "tests/egraph/random_program.h"

namespace l3c::egraph {
namespace {

double g_seconds = 4;
uint64_t g_first = 1;

struct Tally {
  uint64_t programs = 0, grown = 0, shrunk = 0, united = 0, subsumed = 0, failed = 0, held = 0,
           until = 0, large = 0;
};

constexpr size_t kManyRows = 70;
// The naive engine keeps every match of every step: a program with more than this is left.
constexpr uint64_t kManyMatches = 200'000;

// Runs one program on both engines; false when they differ.
void Compare(uint64_t seed, Tally* tally) {
  RandomProgram program(seed);
  EGraph graph;
  const ProgramResult loaded = LoadProgram(graph, program.text(), "random.egg");
  ASSERT_TRUE(loaded.ok()) << loaded.status.ToString() << program.text();
  NaiveEngine naive(graph);
  ++tally->programs;

  bool large = false;
  const auto step = [&](const Schedule& schedule) {
    Budget budget;
    budget.max_iterations = 4;
    budget.max_matches = kManyMatches;
    const size_t rows = graph.RowCount();
    const size_t unions = graph.unions().size();
    const RunReport report = RunSchedule(graph, schedule, budget);
    if (report.stop == StopReason::kMatchLimit) {
      large = true;
      return;
    }
    naive.Run(schedule, budget.max_iterations);
    ASSERT_EQ(report.stop == StopReason::kFailed, naive.failed());
    if (naive.failed()) {
      ++tally->failed;
      return;
    }
    tally->grown += graph.RowCount() > rows;
    tally->shrunk += graph.RowCount() < rows;
    tally->united += graph.unions().size() > unions;
    tally->until += report.stop == StopReason::kUntil;
    std::vector<size_t> sizes;
    for (uint32_t f = 0; f < graph.function_count(); ++f) {
      sizes.push_back(graph.LiveRows(FunctionId{f}));
    }
    ASSERT_EQ(sizes, naive.Sizes());
    ASSERT_EQ(Fingerprint(graph, PlainRows(graph)), Fingerprint(graph, naive.Rows()));
    for (const PlainRow& row : naive.Rows()) tally->subsumed += row.subsumed;
    for (uint32_t r = 0; r < graph.rule_count(); ++r) {
      const Rule& rule = graph.rule(RuleId{r});
      if (rule.ruleset != graph.FindRuleset("queries")) continue;
      for (const bool subsumed_too : {false, true}) {
        const bool holds = HasMatch(graph, rule.query, subsumed_too);
        ASSERT_EQ(holds, naive.HasMatch(rule.query, subsumed_too)) << rule.name;
        tally->held += holds;
      }
    }
  };
  step(Schedule::Run(graph.FindRuleset("start")));
  for (int i = 0; i < 4 && !large && !::testing::Test::HasFatalFailure() && !naive.failed(); ++i) {
    if (graph.RowCount() > kManyRows) break;
    step(program.NextSchedule(graph));
  }
  tally->large += large;
  if (::testing::Test::HasFatalFailure()) {
    std::cerr << "seed " << seed << program.text() << "\n";
  }
}

TEST(Differential, RandomProgramsEndAsInTheNaiveEngine) {
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(g_seconds);
  Tally tally;
  uint64_t seed = g_first;
  while (std::chrono::steady_clock::now() - start < limit) {
    Compare(seed++, &tally);
    if (HasFatalFailure()) return;
  }
  std::cout << tally.programs << " programs; schedules that grew " << tally.grown << ", shrank "
            << tally.shrunk << ", united " << tally.united << ", failed " << tally.failed
            << ", stopped at their condition " << tally.until << "; queries that held "
            << tally.held << "; subsumed rows " << tally.subsumed << "; left as too large "
            << tally.large << "\n";
  // The programs do what they are for.
  if (tally.programs < 200) return;
  for (const uint64_t count : {tally.grown, tally.shrunk, tally.united, tally.failed, tally.held,
                               tally.until, tally.subsumed}) {
    EXPECT_GT(count, 0u);
  }
  EXPECT_LE(tally.large, 1 + tally.programs / 1000);
}

}  // namespace
}  // namespace l3c::egraph

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--seconds=")) {
      l3c::egraph::g_seconds = std::atof(argument.c_str() + 10);
    } else if (argument.starts_with("--first=")) {
      l3c::egraph::g_first = std::strtoull(argument.c_str() + 8, nullptr, 10);
    } else {
      std::cerr << "usage: differential_test [--seconds=S] [--first=SEED]\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
