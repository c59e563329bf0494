#include "tools/l3c/sweep/plots.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "tools/l3c/sweep/chart.h"
#include "tools/l3c/sweep/figures.h"
#include "tools/l3c/sweep/statistics.h"
#include "tools/l3c/sweep/table.h"

namespace l3c::tools::sweep {
namespace {

// The first figure of a cost that any point has.
const Figure* CostOf(const std::vector<Summary>& points) {
  for (const char* name : {"step_ms", "predicted_s", "dag_cost"}) {
    for (const Summary& point : points) {
      if (point.figures.contains(name)) return FindFigure(name);
    }
  }
  return nullptr;
}

std::optional<Spread> Scaled(const Summary& point, const Figure& figure) {
  const auto found = point.figures.find(std::string(figure.name));
  if (found == point.figures.end()) return std::nullopt;
  const Spread spread = SpreadOf(found->second);
  return Spread{spread.low * figure.scale, spread.median * figure.scale,
                spread.high * figure.scale};
}

// "nodes=5000": nodes, 5000. Nothing for several counts at once, and for `default`.
std::optional<std::pair<std::string, double>> BudgetOf(const Summary& point) {
  const std::string& label = point.Setting("budget");
  const size_t equals = label.find('=');
  if (equals == std::string::npos || label.find(',') != std::string::npos) return std::nullopt;
  double count = 0;
  const char* end = label.data() + label.size();
  if (std::from_chars(label.data() + equals + 1, end, count).ptr != end) return std::nullopt;
  return std::pair(label.substr(0, equals), count);
}

// What tells points of one panel apart, without `but`: "egraph, reassoc", or `alone`.
std::string NameOf(const Summary& point, const std::vector<std::string>& axes,
                   const std::string& but, const std::string& alone) {
  std::string name;
  for (const std::string& axis : axes) {
    if (axis == but || point.Setting(axis).empty()) continue;
    name += (name.empty() ? "" : ", ") + point.Setting(axis);
  }
  return name.empty() ? alone : name;
}

// Panels by workload, series by name, in the order of the points.
class Panels {
 public:
  Series& At(const std::string& panel, const std::string& series) {
    Panel& found = Find(panels_, panel);
    for (Series& known : found.series) {
      if (known.name == series) return known;
    }
    found.series.push_back({series, {}, true, true});
    return found.series.back();
  }
  std::vector<Panel> Take() { return std::move(panels_); }
  bool empty() const { return panels_.empty(); }

 private:
  static Panel& Find(std::vector<Panel>& panels, const std::string& title) {
    for (Panel& known : panels) {
      if (known.title == title) return known;
    }
    panels.push_back({title, {}});
    return panels.back();
  }
  std::vector<Panel> panels_;
};

void SortByX(std::vector<Panel>& panels) {
  for (Panel& panel : panels) {
    for (Series& series : panel.series) {
      std::stable_sort(series.marks.begin(), series.marks.end(),
                       [](const Mark& a, const Mark& b) { return a.x < b.x; });
    }
  }
}

// A figure against the budget that most points have.
std::optional<std::string> OverBudget(const std::vector<Summary>& points, const Figure& figure,
                                      const std::string& title) {
  std::map<std::string, size_t> kinds;
  for (const Summary& point : points) {
    if (const auto budget = BudgetOf(point)) ++kinds[budget->first];
  }
  std::string kind;
  for (const auto& [name, count] : kinds) {
    if (kind.empty() || count > kinds[kind]) kind = name;
  }
  const std::vector<std::string> axes = VaryingAxes(points);
  Panels panels;
  for (const Summary& point : points) {
    const auto budget = BudgetOf(point);
    const std::optional<Spread> value = Scaled(point, figure);
    if (!budget || budget->first != kind || !value || value->low <= 0) continue;
    panels.At(point.workload, NameOf(point, axes, "budget", "found"))
        .marks.push_back({budget->second, value->low, value->median, value->high,
                          point.Label() + ": " + FigureText(value->median)});
  }
  if (panels.empty()) return std::nullopt;
  Chart chart;
  chart.title = title;
  chart.x_label = "budget: " + kind;
  chart.y_label = std::string(figure.title);
  chart.log_x = chart.log_y = true;
  chart.panels = panels.Take();
  SortByX(chart.panels);
  return RenderChart(chart);
}

// Points with a rule left out, beside the same ones with all rules.
struct LeftOut {
  const Summary* without = nullptr;
  const Summary* with = nullptr;
};
std::vector<LeftOut> PairsOf(const std::vector<Summary>& points) {
  std::map<std::string, const Summary*> whole;
  const auto key = [](const Summary& point) {
    std::string text = point.workload;
    for (const auto& [axis, label] : point.settings) {
      if (axis != "without") text += "\n" + axis + "=" + label;
    }
    return text;
  };
  for (const Summary& point : points) {
    if (point.Setting("without") == "none") whole[key(point)] = &point;
  }
  std::vector<LeftOut> pairs;
  for (const Summary& point : points) {
    const std::string& label = point.Setting("without");
    const auto found = whole.find(key(point));
    if (label.empty() || label == "none" || found == whole.end()) continue;
    pairs.push_back({&point, found->second});
  }
  return pairs;
}

std::optional<std::string> RuleBars(
    const std::vector<Summary>& points, const Figure& figure, const std::string& title,
    const std::string& x_label, double zero,
    const std::function<Bar(const Spread& with, const Spread& without)>& bar_of) {
  const std::vector<std::string> axes = VaryingAxes(points);
  BarChart chart{title, x_label, zero, {}};
  for (const LeftOut& pair : PairsOf(points)) {
    const std::optional<Spread> with = Scaled(*pair.with, figure);
    const std::optional<Spread> without = Scaled(*pair.without, figure);
    if (!with || !without || with->low <= 0) continue;
    const std::string others = NameOf(*pair.without, axes, "without", "");
    const std::string panel = pair.without->workload + (others.empty() ? "" : ", " + others);
    if (chart.panels.empty() || chart.panels.back().title != panel) {
      auto found = std::find_if(chart.panels.begin(), chart.panels.end(),
                                [&](const BarPanel& known) { return known.title == panel; });
      if (found == chart.panels.end()) {
        chart.panels.push_back({panel, {}});
      } else {
        std::rotate(found, found + 1, chart.panels.end());  // so that it is the last one
      }
    }
    Bar bar = bar_of(*with, *without);
    bar.label = pair.without->Setting("without");
    chart.panels.back().bars.push_back(std::move(bar));
  }
  if (chart.panels.empty()) return std::nullopt;
  return RenderBars(chart);
}

std::optional<std::string> Pareto(const std::vector<Summary>& points, const Figure& cost) {
  const Figure& time = *FindFigure("optimise_s");
  const std::vector<std::string> axes = VaryingAxes(points);
  Panels panels;
  size_t marks = 0;
  for (const Summary& point : points) {
    const std::optional<Spread> x = Scaled(point, time);
    const std::optional<Spread> y = Scaled(point, cost);
    if (!x || !y || x->median <= 0 || y->low <= 0) continue;
    Series& series = panels.At(point.workload, axes.empty() ? "found" : point.Setting(axes[0]));
    series.line = false;
    series.marks.push_back({x->median, y->low, y->median, y->high, point.Label()});
    ++marks;
  }
  if (marks < 2) return std::nullopt;
  Chart chart;
  chart.title = "What optimising longer buys";
  chart.x_label = std::string(time.title);
  chart.y_label = std::string(cost.title);
  chart.log_x = chart.log_y = true;
  chart.panels = panels.Take();
  for (Panel& panel : chart.panels) {
    std::vector<Mark> all;
    for (const Series& series : panel.series) {
      all.insert(all.end(), series.marks.begin(), series.marks.end());
    }
    std::stable_sort(all.begin(), all.end(), [](const Mark& a, const Mark& b) {
      return a.x != b.x ? a.x < b.x : a.y < b.y;
    });
    // A front falls in steps.
    Series front{"front", {}, true, false};
    for (const Mark& mark : all) {
      if (!front.marks.empty() && mark.y >= front.marks.back().y) continue;
      if (!front.marks.empty()) front.marks.push_back({mark.x, 0, front.marks.back().y, 0, ""});
      front.marks.push_back({mark.x, mark.y, mark.y, mark.y, mark.title});
    }
    for (Mark& mark : front.marks) mark.low = mark.high = mark.y;
    panel.series.push_back(std::move(front));
  }
  return RenderChart(chart);
}

}  // namespace

std::vector<Plot> PlotsOf(const std::vector<Summary>& points) {
  std::vector<Plot> plots;
  const auto add = [&](const char* file, std::optional<std::string> svg) {
    if (svg) plots.push_back({file, *std::move(svg)});
  };
  const Figure* cost = CostOf(points);
  if (cost != nullptr) {
    add("cost_over_budget.svg", OverBudget(points, *cost, "What a larger budget buys"));
  }
  add("egraph_growth.svg",
      OverBudget(points, *FindFigure("egraph_nodes"), "How the e-graph grows"));
  add("rule_time.svg",
      RuleBars(points, *FindFigure("optimise_s"), "What each rule takes of the time to optimise",
               "ms more than without it, on the processor", 0,
               [](const Spread& with, const Spread& without) {
                 return Bar{"", with.low - without.high, with.median - without.median,
                            with.high - without.low};
               }));
  if (cost != nullptr) {
    add("rule_worth.svg", RuleBars(points, *cost, "What each rule is worth",
                                   std::string(cost->title) + ": without the rule / with it", 1,
                                   [](const Spread& with, const Spread& without) {
                                     return Bar{"", without.low / with.high,
                                                without.median / with.median,
                                                without.high / with.low};
                                   }));
    add("pareto.svg", Pareto(points, *cost));
  }
  return plots;
}

}  // namespace l3c::tools::sweep
