#include "tools/l3c/sweep/chart.h"

#include <string>

#include "gtest/gtest.h"
#include "tools/l3c/sweep/plots.h"
#include "tools/l3c/sweep/table.h"

namespace l3c::tools::sweep {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Summary PointOf(const std::string& search, const std::string& budget, double optimise,
                double predicted) {
  Summary point;
  point.point = search + budget;
  point.workload = "net <1>";
  point.settings = {{"search", search}, {"budget", budget}};
  point.repeats = 3;
  point.figures["optimise_s"] = {optimise, optimise * 1.1, optimise * 0.9};
  point.figures["predicted_s"] = {predicted};
  point.figures["egraph_nodes"] = {optimise * 1e5};
  return point;
}

TEST(Chart, HasAxesUnitsLegendAndBothSchemes) {
  const std::vector<Summary> points = {
      PointOf("greedy", "nodes=1000", 0.01, 0.005), PointOf("greedy", "nodes=10000", 0.02, 0.004),
      PointOf("egraph", "nodes=1000", 0.03, 0.003), PointOf("egraph", "nodes=10000", 0.09, 0.002),
      PointOf("egraph", "default", 0.2, 0.001)};
  const std::vector<Plot> plots = PlotsOf(points);
  ASSERT_EQ(plots.size(), 3u);
  EXPECT_EQ(plots[0].file, "cost_over_budget.svg");
  EXPECT_EQ(plots[1].file, "egraph_growth.svg");
  EXPECT_EQ(plots[2].file, "pareto.svg");
  const std::string& svg = plots[0].svg;
  EXPECT_NE(svg.find("budget: nodes"), std::string::npos);
  EXPECT_NE(svg.find("predicted step, ms"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(svg.find("net &lt;1&gt;"), std::string::npos);
  EXPECT_EQ(Count(svg, "class=\"l\""), 2u);  // a line a series
  EXPECT_EQ(Count(svg, "class=\"d\""), 6u);  // four marks and the legend
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // Every point that dominates lies on the front.
  EXPECT_NE(plots[2].svg.find("front"), std::string::npos);
}

TEST(Chart, OnePointAndNoPointsAreDrawn) {
  Chart chart;
  chart.log_x = chart.log_y = true;
  EXPECT_NE(RenderChart(chart).find("</svg>"), std::string::npos);
  chart.panels = {{"one", {{"series", {{5, 5, 5, 5, "five"}}, true, true}}}, {"none", {}}};
  const std::string svg = RenderChart(chart);
  EXPECT_NE(svg.find("five"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Bars, BeginAtZero) {
  const std::string svg =
      RenderBars({"title", "ms", 0, {{"panel", {{"gain", -2, -1, -0.5}, {"cost", 1, 2, 3}}}}});
  EXPECT_EQ(Count(svg, "<rect class=\"d\""), 2u);
  EXPECT_NE(svg.find("gain: -1"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Table, IsAsWideAsItsCells) {
  EXPECT_EQ(RenderTable({{"a", "β"}, {"long", "1"}}), "| a    | β |\n|------|---|\n| long | 1 |\n");
}

}  // namespace
}  // namespace l3c::tools::sweep
