#include "tools/l3c/sweep/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>

#include "tools/l3c/sweep/figures.h"
#include "tools/l3c/sweep/statistics.h"

namespace l3c::tools::sweep {
namespace {

// Of UTF-8: bytes that do not go on with a character.
size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string RenderTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 1);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Characters(row[c]));
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string cell = c < rows[r].size() ? rows[r][c] : "";
      text += "| " + cell + std::string(widths[c] - Characters(cell) + 1, ' ');
    }
    text += "|\n";
    if (r > 0) continue;
    for (size_t width : widths) text += "|" + std::string(width + 2, '-');
    text += "|\n";
  }
  return text;
}

std::string FigureText(double value) {
  char text[48];
  if (value == static_cast<double>(static_cast<int64_t>(value)) && std::abs(value) < 1e9) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
  } else {
    std::snprintf(text, sizeof text, "%.4g", value);
  }
  return text;
}

std::vector<std::string> VaryingAxes(const std::vector<Summary>& points) {
  static constexpr const char* kAxes[] = {"search",  "numerics", "memory", "evidence", "rules",
                                          "without", "budget",   "shapes", "extractor"};
  std::vector<std::string> varying;
  for (const char* axis : kAxes) {
    std::set<std::string> labels;
    for (const Summary& point : points) labels.insert(point.Setting(axis));
    if (labels.size() > 1) varying.emplace_back(axis);
  }
  return varying;
}

std::string ResultTable(const std::vector<Summary>& points) {
  const std::vector<std::string> axes = VaryingAxes(points);
  std::vector<const Figure*> figures;
  for (const Figure& figure : AllFigures()) {
    const std::string name(figure.name);
    if (std::any_of(points.begin(), points.end(),
                    [&](const Summary& point) { return point.figures.contains(name); })) {
      figures.push_back(&figure);
    }
  }
  std::vector<std::string> failures;
  std::vector<std::vector<std::string>> rows(1, {"workload"});
  rows[0].insert(rows[0].end(), axes.begin(), axes.end());
  for (const Figure* figure : figures) rows[0].emplace_back(figure->title);
  for (const Summary& point : points) {
    std::vector<std::string> row = {point.workload};
    for (const std::string& axis : axes) row.push_back(point.Setting(axis));
    if (!point.failed.empty()) {
      row.emplace_back("failed");
      failures.push_back(point.Label() + ": " + point.failed);
      rows.push_back(std::move(row));
      continue;
    }
    for (const Figure* figure : figures) {
      const auto found = point.figures.find(std::string(figure->name));
      if (found == point.figures.end()) {
        row.emplace_back();
        continue;
      }
      const Spread spread = SpreadOf(found->second);
      std::string text = FigureText(spread.median * figure->scale);
      if (figure->measured && found->second.size() > 1 && spread.median > 0) {
        char percent[32];
        std::snprintf(percent, sizeof percent, " ±%.1f %%",
                      (spread.high - spread.low) / 2 / spread.median * 100);
        text += percent;
      }
      row.push_back(std::move(text));
    }
    rows.push_back(std::move(row));
  }
  std::string text = RenderTable(rows);
  constexpr size_t kTold = 20;
  for (size_t f = 0; f < std::min(kTold, failures.size()); ++f) {
    text += "failed: " + failures[f] + "\n";
  }
  if (failures.size() > kTold) {
    text +=
        "failed: " + std::to_string(failures.size() - kTold) + " more; results.jsonl says why\n";
  }
  return text;
}

}  // namespace l3c::tools::sweep
