// How decisions are shown.
#include "layers/search/decision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "nlohmann/json.hpp"

namespace l3c::search {
namespace {

Explanation Example() {
  Explanation explanation;
  explanation.lowering = "l3->l2";
  Decision decision;
  decision.id = "l2/m/depth";
  decision.chosen = "3";
  decision.cost = {{"time", 2, "s", "prior"}, {"bytes", 100, "B", "analytical"}};
  for (int i = 0; i < 3; ++i) {
    Loser loser;
    loser.label = std::to_string(i);
    loser.cost = {{"time", 2.5 + i, "s", "prior"}, {"bytes", 100, "B", "analytical"}};
    loser.difference = Difference(loser.cost, decision.cost);
    loser.decided_by = "time";
    decision.losers.push_back(loser);
  }
  decision.rules = {{"hidden stage", "rewrites/lower_l3_l2.egg", 74}};
  decision.pruned = {{"4", "param_budget(1K)", 0}};
  explanation.decisions.push_back(decision);
  decision.id = "l2/m/batch";
  decision.losers.clear();
  decision.forced = true;
  explanation.decisions.push_back(decision);
  explanation.pruned = {{"widths above 64", "width(64)", 6}};
  explanation.report = {12, 3, 40, 100, "saturated", 77, 5};
  return explanation;
}

TEST(Decision, TextShowsTheWinnerTwoLosersRulesAndTheReport) {
  EXPECT_EQ(RenderExplanation(Example()),
            "l3->l2\n"
            "  l2/m/depth = 3\n"
            "    cost      time 2 s (prior), bytes 100 B (analytical)\n"
            "    loser     0: +0.5 s time; decided by time\n"
            "    loser     1: +1.5 s time; decided by time\n"
            "              and 1 more\n"
            "    rule      hidden stage  rewrites/lower_l3_l2.egg:74\n"
            "    pruned    4: param_budget(1K)\n"
            "  l2/m/batch = 3  [forced]\n"
            "    rule      hidden stage  rewrites/lower_l3_l2.egg:74\n"
            "    pruned    4: param_budget(1K)\n"
            "  pruned    widths above 64: width(64) (6)\n"
            "  searched  77 candidates on 12 e-nodes in 3 classes; 5 scored one by one\n"
            "  work      40 of 100; stopped: saturated\n");
}

TEST(Decision, JsonIsOneObjectALineWithEverything) {
  Explanation explanation = Example();
  explanation.decisions[0].losers[2].cost[0].value = INFINITY;
  std::istringstream lines(RenderExplanationJson(explanation));
  std::string line;
  std::vector<nlohmann::json> all;
  while (std::getline(lines, line)) all.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["event"], "decision");
  EXPECT_EQ(all[0]["losers"].size(), 3u);
  EXPECT_EQ(all[0]["losers"][2]["cost"][0]["value"], "inf");
  EXPECT_EQ(all[1]["forced"], true);
  EXPECT_EQ(all[2]["event"], "search");
  EXPECT_EQ(all[2]["candidates"], 77);
  EXPECT_EQ(all[2]["pruned"][0]["count"], 6);
}

// Counts of deep networks are beyond whole numbers, and then beyond doubles.
TEST(Decision, CountsAreTrueAtAnySize) {
  Explanation explanation = Example();
  const auto figures = [&](double count) {
    explanation.report.candidates = count;
    const std::string text = RenderExplanation(explanation);
    const size_t begin = text.find("searched  ") + 10;
    const std::string json = RenderExplanationJson(explanation);
    const size_t last = json.rfind('\n', json.size() - 2);
    return std::make_pair(text.substr(begin, text.find(" candidates") - begin),
                          nlohmann::json::parse(json.substr(last + 1))["candidates"]);
  };
  EXPECT_EQ(figures(1e15).first, "1000000000000000");
  EXPECT_EQ(figures(1e15).second, 1'000'000'000'000'000);
  EXPECT_EQ(figures(1.5e87).first, "about 1.5e+87");
  EXPECT_EQ(figures(1.5e87).second, 1.5e87);
  EXPECT_EQ(figures(INFINITY).first, "more than 10^308");
  EXPECT_GT(figures(INFINITY).second, 1e308);
}

TEST(Decision, IsFoundById) {
  const Explanation explanation = Example();
  ASSERT_NE(explanation.Find("l2/m/batch"), nullptr);
  EXPECT_EQ(explanation.Find("l2/m/bat"), nullptr);
}

}  // namespace
}  // namespace l3c::search
