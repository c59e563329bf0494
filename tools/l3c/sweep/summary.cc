#include "tools/l3c/sweep/summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/durable_file.h"
#include "tools/l3c/sweep/figures.h"
#include "tools/l3c/sweep/statistics.h"

namespace l3c::tools::sweep {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxResults = size_t{1} << 30;

Summary ReadSummary(const json& line) {
  Summary summary;
  summary.point = line.at("point").get<std::string>();
  summary.workload = line.at("workload").get<std::string>();
  // Ordered by name: the file's own order is lost, and tables take that of the grammar.
  for (const auto& [axis, label] : line.at("settings").items()) {
    summary.settings.emplace_back(axis, label.get<std::string>());
  }
  summary.repeats = line.at("repeats").get<size_t>();
  summary.failed = line.value("failed", "");
  if (!summary.failed.empty()) return summary;
  for (const auto& [name, figure] : line.at("figures").items()) {
    std::vector<double>& values = summary.figures[name];
    if (figure.is_object()) {
      values = figure.at("samples").get<std::vector<double>>();
    } else {
      values = {figure.get<double>()};
    }
    const bool sound = std::all_of(values.begin(), values.end(),
                                   [](double value) { return std::isfinite(value) && value >= 0; });
    if (values.empty() || !sound) throw std::domain_error("figure '" + name + "' is absurd");
  }
  return summary;
}

}  // namespace

const std::string& Summary::Setting(const std::string& axis) const {
  static const std::string* none = new std::string();
  for (const auto& [name, label] : settings) {
    if (name == axis) return label;
  }
  return *none;
}

std::optional<double> Summary::Median(std::string_view figure) const {
  const auto found = figures.find(std::string(figure));
  if (found == figures.end()) return std::nullopt;
  return SpreadOf(found->second).median;
}

std::string Summary::Label() const {
  std::string label = workload;
  for (const auto& [axis, value] : settings) label += " " + axis + "=" + value;
  return label;
}

std::vector<Summary> Summarise(const std::vector<Point>& points, const std::vector<Sample>& samples,
                               int64_t repeats) {
  std::vector<Summary> summaries;
  std::map<std::string, size_t> at;
  for (const Point& point : points) {
    at[point.key] = summaries.size();
    summaries.push_back({point.key, point.workload, point.settings, 0, {}, ""});
  }
  for (const Sample& sample : samples) {
    const auto found = at.find(sample.point);
    if (found == at.end() || sample.repeat > repeats) continue;
    Summary& summary = summaries[found->second];
    if (!sample.failed.empty()) {
      summary.failed = sample.failed;
      continue;
    }
    summary.failed.clear();  // another try succeeded
    ++summary.repeats;
    for (const auto& [name, value] : sample.figures) {
      const Figure* figure = FindFigure(name);
      std::vector<double>& values = summary.figures[name];
      if (values.empty() || (figure != nullptr && figure->measured)) values.push_back(value);
    }
  }
  for (Summary& summary : summaries) {
    if (!summary.failed.empty()) summary.figures.clear();
  }
  return summaries;
}

ordered_json Line(const Summary& summary) {
  ordered_json settings = ordered_json::object();
  for (const auto& [axis, label] : summary.settings) settings[axis] = label;
  ordered_json line = {{"event", "point"},
                       {"point", summary.point},
                       {"workload", summary.workload},
                       {"settings", settings},
                       {"repeats", summary.repeats}};
  if (!summary.failed.empty()) {
    line["failed"] = summary.failed;
    return line;
  }
  ordered_json& figures = line["figures"] = ordered_json::object();
  for (const Figure& figure : AllFigures()) {
    const auto found = summary.figures.find(std::string(figure.name));
    if (found == summary.figures.end()) continue;
    if (!figure.measured) {
      figures[found->first] = found->second.front();
      continue;
    }
    const Spread spread = SpreadOf(found->second);
    figures[found->first] = {{"median", spread.median},
                             {"low", spread.low},
                             {"high", spread.high},
                             {"samples", found->second}};
  }
  return line;
}

ordered_json FirstLine(const Results& results) {
  return {{"event", "sweep"},
          {"version", 1},
          {"grid", results.grid},
          {"build", results.build},
          {"machine", results.machine}};
}

absl::StatusOr<Results> ReadResults(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string file =
      fs::is_directory(path, ignored) ? (fs::path(path) / "results.jsonl").string() : path;
  const absl::StatusOr<std::string> text = runtime::ReadText(file, kMaxResults);
  if (!text.ok()) return text.status();
  Results results;
  size_t number = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    ++number;
    std::string fault;
    try {
      const json line = json::parse(text->substr(at, end - at));
      if (number == 1) {
        if (line.value("event", "") != "sweep") {
          fault = "it is no file of results: 'l3c sweep GRID' writes one";
        } else if (line.at("version") != 1) {
          fault =
              "it is of version " + line.at("version").dump() + ", and this l3c knows version 1";
        } else {
          results.grid = line.at("grid").get<std::string>();
          results.build = line.at("build").get<std::string>();
          results.machine = line.at("machine").get<std::string>();
        }
      } else {
        results.points.push_back(ReadSummary(line));
      }
    } catch (const json::exception&) {
      fault = number == 1 ? "it is no file of results: 'l3c sweep GRID' writes one"
                          : "this is no point: the file has been damaged";
    } catch (const std::domain_error& error) {
      fault = error.what();
    }
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ":1: ", fault));
    }
    at = end + 1;
  }
  if (number == 0) return absl::InvalidArgumentError(absl::StrCat(file, ":1:1: it is empty"));
  return results;
}

}  // namespace l3c::tools::sweep
