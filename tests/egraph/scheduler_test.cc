// Schedulers: when a rule is banned, for how long, and what is found in spite of it.
#include "egraph/scheduler.h"

#include <gtest/gtest.h>

#include <string>

#include "egraph/program.h"
#include "egraph/run.h"

namespace l3c::egraph {
namespace {

TEST(Scheduler, BansDouble) {
  Scheduler scheduler({.match_limit = 10, .ban_length = 2});
  const RuleId rule{5};
  scheduler.BeginStep();
  EXPECT_EQ(scheduler.MatchLimit(rule), 10u);
  scheduler.Ban(rule);
  for (uint64_t left : {2u, 1u}) {
    scheduler.BeginStep();
    EXPECT_EQ(scheduler.BannedFor(rule), left);
  }
  scheduler.BeginStep();
  EXPECT_EQ(scheduler.BannedFor(rule), 0u);
  EXPECT_EQ(scheduler.MatchLimit(rule), 20u);
  scheduler.Ban(rule);
  scheduler.BeginStep();
  EXPECT_EQ(scheduler.BannedFor(rule), 4u);
  EXPECT_EQ(scheduler.MatchLimit(rule), 40u);
}

TEST(Scheduler, TheFirstBanToEndEndsAtOnceWhenNothingElseIsLeft) {
  Scheduler scheduler({.match_limit = 1, .ban_length = 3});
  const std::vector<RuleId> rules = {RuleId{2}, RuleId{3}, RuleId{4}};
  scheduler.BeginStep();
  EXPECT_FALSE(scheduler.EndFirstBan(rules));
  scheduler.Ban(rules[0]);
  scheduler.BeginStep();
  scheduler.Ban(rules[1]);
  EXPECT_TRUE(scheduler.EndFirstBan(rules));
  scheduler.BeginStep();
  EXPECT_EQ(scheduler.BannedFor(rules[0]), 0u);
  EXPECT_EQ(scheduler.BannedFor(rules[1]), 1u);
  EXPECT_EQ(scheduler.BannedFor(rules[2]), 0u);
}

TEST(Scheduler, NumbersDoNotOverflow) {
  Scheduler scheduler({.match_limit = uint64_t{1} << 62, .ban_length = uint64_t{1} << 62});
  const RuleId rule{2};
  for (int i = 0; i < 100; ++i) {
    scheduler.BeginStep();
    scheduler.Ban(rule);
    EXPECT_GT(scheduler.BannedFor(rule), uint64_t{1} << 60);
    EXPECT_GE(scheduler.MatchLimit(rule), uint64_t{1} << 62);
  }
}

// A graph over which `grow` matches `leaves`² times in a step and `tag` once a leaf.
std::string Text(int leaves) {
  std::string text = R"(
    (relation item (i64))
    (relation pair (i64 i64))
    (relation tagged (i64))
    (rule ((item x) (item y)) ((pair x y)) :name "grow")
    (rule ((item x)) ((tagged x)) :name "tag")
  )";
  for (int i = 0; i < leaves; ++i) text += "(item " + std::to_string(i) + ")";
  return text;
}

RuleId Named(const EGraph& graph, std::string_view name) {
  for (uint32_t r = 2; r < graph.rule_count(); ++r) {
    if (graph.rule(RuleId{r}).name == name) return RuleId{r};
  }
  return {};
}

size_t Rows(const EGraph& graph, std::string_view name) {
  return graph.LiveRows(graph.FindFunction(name));
}

TEST(Scheduler, ABannedRuleRestsAndFindsItsMatchesLater) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, Text(12), "t.egg").ok());
  const SchedulerId backoff = graph.DeclareScheduler("b", {.match_limit = 100, .ban_length = 2});
  const RuleId grow = Named(graph, "grow");
  const Schedule step = Schedule::Run(kDefaultRuleset, backoff);

  RunReport report = RunSchedule(graph, step);
  EXPECT_EQ(Rows(graph, "tagged"), 12u);
  EXPECT_EQ(Rows(graph, "pair"), 0u);
  EXPECT_EQ(report.stop, StopReason::kScheduleEnd);
  EXPECT_EQ(graph.history(grow).bans, 1u);
  EXPECT_EQ(graph.history(grow).banned_for, 2u);
  EXPECT_EQ(graph.history(grow).applied, 0u);

  // Nothing else is left: the rest of the ban is skipped, but for the step that finds that out.
  report = RunSchedule(graph, step);
  EXPECT_EQ(report.stop, StopReason::kScheduleEnd);
  EXPECT_EQ(graph.history(grow).banned_for, 0u);
  RunSchedule(graph, step);
  EXPECT_EQ(Rows(graph, "pair"), 144u);
  EXPECT_EQ(graph.history(grow).applied, 144u);
  EXPECT_EQ(graph.history(grow).last_search, graph.search_step());
  EXPECT_FALSE(graph.history(grow).stopped_by.has_value());
}

TEST(Scheduler, SaturationWaitsForBannedRules) {
  EGraph graph;
  ASSERT_TRUE(LoadProgram(graph, Text(40), "t.egg").ok());
  const SchedulerId backoff = graph.DeclareScheduler("b", {.match_limit = 7, .ban_length = 50});
  const RunReport report =
      RunSchedule(graph, Schedule::Saturate(Schedule::Run(kDefaultRuleset, backoff)));
  EXPECT_EQ(report.stop, StopReason::kSaturated);
  EXPECT_EQ(Rows(graph, "pair"), 1600u);
  // 7, 14, … 896 matches are too few, 1792 are enough; each ban but the first lasts one step.
  EXPECT_EQ(graph.history(Named(graph, "grow")).bans, 8u);
  EXPECT_LT(report.iterations, 25u);
}

TEST(Scheduler, InText) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, Text(12) + R"(
    (let-scheduler b (back-off :match-limit 100 :ban-length 2))
    (run-schedule (run-with b))
    (print-size pair)
    (run-schedule (saturate (run-with b)))
    (print-size pair)
    (run-schedule (let-scheduler c (back-off)) (repeat 3 (run-with c :until (tagged 1))))
  )",
                                           "t.egg");
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_EQ(result.output(), "0\n144\n");
  EXPECT_EQ(graph.scheduler(graph.FindScheduler("c")).options().match_limit, 1000u);
}

TEST(Scheduler, ErrorsInText) {
  const auto error = [](std::string_view text) {
    EGraph graph;
    return LoadProgram(graph, text, "t.egg").status.message;
  };
  EXPECT_EQ(error("(run-schedule (run-with b))"),
            "unknown scheduler 'b'; (let-scheduler NAME (back-off)) makes one");
  EXPECT_EQ(error("(let-scheduler b (round-robin))"),
            "expected (back-off [:match-limit N] [:ban-length N])");
  EXPECT_EQ(error("(let-scheduler b (back-off :match-limit -1))"),
            "a count from 1 on must follow ':match-limit'");
  EXPECT_EQ(error("(let-scheduler b (back-off :match-limit 0))"),
            "a count from 1 on must follow ':match-limit'");
  EXPECT_EQ(error("(let-scheduler b (back-off 3))"), "expected :match-limit or :ban-length");
}

}  // namespace
}  // namespace l3c::egraph
