#include "tools/l3c/sweep/figures.h"

#include <algorithm>
#include <array>

#include "nlohmann/json.hpp"

namespace l3c::tools::sweep {
namespace {

using nlohmann::json;

constexpr std::array kFigures = {
    Figure{"step_ms", "step, ms", 1, true},
    Figure{"optimise_s", "optimise, ms", 1e3, true},
    Figure{"first_step_s", "first step, ms", 1e3, true},
    Figure{"predicted_s", "predicted step, ms", 1e3, false},
    Figure{"dag_cost", "DAG cost", 1, false},
    Figure{"tree_cost", "tree cost", 1, false},
    Figure{"kernels", "kernels", 1, false},
    Figure{"bytes_moved", "moved, MB", 1e-6, false},
    Figure{"egraph_nodes", "e-nodes", 1, false},
    Figure{"work", "matches and steps", 1, false},
    Figure{"peak_rss_bytes", "peak memory, MB", 1e-6, true},
    Figure{"loss", "loss", 1, false},
};

void Add(const json& line, const char* from, const char* to,
         std::map<std::string, double>& figures) {
  const auto found = line.find(from);
  if (found != line.end() && found->is_number()) figures[to] += found->get<double>();
}

void ReadLine(Step::Kind kind, const json& line, std::map<std::string, double>& figures) {
  const std::string event = line.value("event", "");
  switch (kind) {
    case Step::Kind::kOptimise:
      if (event == "search") {
        Add(line, "egraph_nodes", "egraph_nodes", figures);
        Add(line, "work", "work", figures);
      } else if (event == "plan" && line.value("split", "") == "train" &&
                 !figures.contains("kernels")) {
        Add(line, "kernels", "kernels", figures);
        Add(line, "bytes_moved", "bytes_moved", figures);
      } else if (event == "cost") {
        Add(line, "step_time", "predicted_s", figures);
      } else if (event == "timing" && line.value("part", "") != "parse") {
        Add(line, "cpu_seconds", "optimise_s", figures);
      }
      return;
    case Step::Kind::kRun:
      if (event != "done") return;
      Add(line, "step_ms", "step_ms", figures);
      Add(line, "first_step_s", "first_step_s", figures);
      Add(line, "peak_rss_bytes", "peak_rss_bytes", figures);
      Add(line, "loss", "loss", figures);
      return;
    case Step::Kind::kSaturate:
      if (event != "done") return;
      Add(line, "nodes", "egraph_nodes", figures);
      Add(line, "matches", "work", figures);
      return;
    case Step::Kind::kExtract:
      if (event != "extraction") return;
      Add(line, "dag_cost", "dag_cost", figures);
      Add(line, "tree_cost", "tree_cost", figures);
      return;
  }
}

}  // namespace

std::span<const Figure> AllFigures() { return kFigures; }

const Figure* FindFigure(std::string_view name) {
  const auto found = std::find_if(kFigures.begin(), kFigures.end(),
                                  [&](const Figure& figure) { return figure.name == name; });
  return found == kFigures.end() ? nullptr : &*found;
}

std::vector<Step> StepsOf(const Grid& grid, const Point& point, int64_t repeat,
                          const std::string& scratch) {
  const auto step = [&](Step::Kind kind, std::vector<std::string> begin,
                        const std::vector<std::string>& end) {
    begin.push_back(point.file);
    begin.insert(begin.end(), point.arguments.begin(), point.arguments.end());
    begin.insert(begin.end(), end.begin(), end.end());
    return Step{kind, std::move(begin)};
  };
  switch (point.kind) {
    case WorkloadKind::kEggProgram:
      return {step(Step::Kind::kSaturate, {"egraph", "run"}, {"--json"})};
    case WorkloadKind::kGraph:
      return {step(Step::Kind::kExtract, {"egraph", "extract"}, {"--json"})};
    case WorkloadKind::kProgram:
      break;
  }
  std::vector<Step> steps;
  if (grid.measure == Measure::kOptimise || repeat == 1) {
    steps.push_back(step(Step::Kind::kOptimise, {"optimize"},
                         {"--synthetic", "--json", "--brief", "--timings", "--no-cache"}));
  }
  if (grid.measure == Measure::kRun) {
    std::vector<std::string> end = {"--synthetic", "--json",
                                    "--steps",     std::to_string(grid.steps),
                                    "--threads",   std::to_string(grid.threads),
                                    "--seed",      std::to_string(grid.seed),
                                    "--overwrite", "-o",
                                    scratch};
    steps.push_back(step(Step::Kind::kRun, {"run"}, end));
  }
  return steps;
}

absl::Status ReadFigures(Step::Kind kind, const std::string& output, double cpu_seconds,
                         int64_t peak_rss_bytes, std::map<std::string, double>& figures) {
  std::map<std::string, double> read;
  for (size_t at = 0; at < output.size();) {
    const size_t end = std::min(output.find('\n', at), output.size());
    const json line = json::parse(output.begin() + static_cast<int64_t>(at),
                                  output.begin() + static_cast<int64_t>(end), nullptr,
                                  /*allow_exceptions=*/false);
    at = end + 1;
    if (line.is_object()) ReadLine(kind, line, read);
  }
  if (kind == Step::Kind::kRun ? !read.contains("step_ms") : read.empty()) {
    return absl::InternalError("its output has no figures");
  }
  if (kind == Step::Kind::kSaturate || kind == Step::Kind::kExtract) {
    read["optimise_s"] = cpu_seconds;
  }
  // Of a run its own figure stands; an optimisation's is of no run's memory.
  if (kind != Step::Kind::kRun && !figures.contains("step_ms")) {
    read["peak_rss_bytes"] = static_cast<double>(peak_rss_bytes);
  }
  for (const auto& [name, value] : read) figures[name] = value;
  return absl::OkStatus();
}

}  // namespace l3c::tools::sweep
