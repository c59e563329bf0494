// l3c sweep compare A B: the command around compare.h.
#include <cstdio>
#include <iostream>

#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/sweep/compare.h"
#include "tools/l3c/sweep/figures.h"
#include "tools/l3c/sweep/table.h"

namespace l3c::tools {
namespace {

using nlohmann::ordered_json;
using sweep::Difference;

ordered_json JsonOf(const Difference& difference) {
  ordered_json settings = ordered_json::object();
  for (const auto& [axis, label] : difference.a->settings) settings[axis] = label;
  ordered_json line = {{"event", "difference"},
                       {"workload", difference.a->workload},
                       {"settings", settings},
                       {"figure", difference.figure},
                       {"a", difference.median_a},
                       {"b", difference.median_b},
                       {"exceeds_noise", difference.counts}};
  if (difference.median_a > 0) line["ratio"] = difference.ratio.value;
  if (difference.measured) {
    line["ratio_low"] = difference.ratio.low;
    line["ratio_high"] = difference.ratio.high;
    line["p_adjusted"] = difference.p;
  }
  return line;
}

std::string Text(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Table(const sweep::Comparison& comparison) {
  std::vector<std::vector<std::string>> rows = {
      {"point", "figure", "A", "B", "B / A", "95 % of resamples", "p, adjusted"}};
  for (const Difference& difference : comparison.differences) {
    if (!difference.counts) continue;
    const sweep::Figure& figure = *sweep::FindFigure(difference.figure);
    std::vector<std::string> row = {
        difference.a->Label(), std::string(figure.title),
        sweep::FigureText(difference.median_a * figure.scale),
        sweep::FigureText(difference.median_b * figure.scale),
        difference.median_a > 0 ? Text("%.3f", difference.ratio.value) : std::string("–")};
    if (difference.measured) {
      row.push_back(Text("%.3f", difference.ratio.low) + " … " +
                    Text("%.3f", difference.ratio.high));
      row.push_back(Text("%.2g", difference.p));
    } else {
      row.insert(row.end(), {"the same every time", "–"});
    }
    rows.push_back(std::move(row));
  }
  return rows.size() == 1 ? "no difference exceeds the noise\n" : sweep::RenderTable(rows);
}

}  // namespace

int SweepCompare(const Options& options) {
  std::vector<sweep::Results> results;
  for (const std::string& path : options.sweep.compared) {
    absl::StatusOr<sweep::Results> read = sweep::ReadResults(path);
    if (!read.ok()) {
      EnvironmentError(std::string(read.status().message()));
      return 1;
    }
    results.push_back(*std::move(read));
  }
  const sweep::Comparison comparison = sweep::Compare(results[0], results[1]);
  if (results[0].machine != results[1].machine) {
    std::cerr << "warning: the two were measured on different machines: " << results[0].machine
              << "; " << results[1].machine << "\n";
  }
  size_t counts = 0;
  for (const Difference& difference : comparison.differences) counts += difference.counts;
  if (options.json) {
    for (const Difference& difference : comparison.differences) PrintJsonLine(JsonOf(difference));
    for (const auto& [label, why] : comparison.fate) {
      PrintJsonLine({{"event", "fate"}, {"point", label}, {"what", why}});
    }
    PrintJsonLine({{"event", "done"},
                   {"compared", comparison.differences.size()},
                   {"exceed_noise", counts},
                   {"too_few_repeats", comparison.hopeless},
                   {"only_a", comparison.only_a},
                   {"only_b", comparison.only_b}});
    return 0;
  }
  std::cout << Table(comparison);
  for (const auto& [label, why] : comparison.fate) std::cout << label << ": " << why << "\n";
  for (const std::string& label : comparison.only_a) std::cout << "only in A: " << label << "\n";
  for (const std::string& label : comparison.only_b) std::cout << "only in B: " << label << "\n";
  std::cout << counts << " of " << comparison.differences.size()
            << " figures differ beyond the noise (Mann–Whitney, false discovery rate 5 %, at least "
               "1 %)\n";
  if (comparison.hopeless > 0) {
    std::cout << comparison.hopeless
              << " figures have too few repeats for any difference to count: 4 of each are the "
                 "least\n";
  }
  return 0;
}

}  // namespace l3c::tools
