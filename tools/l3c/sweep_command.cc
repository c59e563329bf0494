// l3c sweep GRID: the command around sweep.h.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "layers/support/diagnostics.h"
#include "layers/support/source.h"
#include "nlohmann/json.hpp"
#include "runtime/folder_lock.h"
#include "runtime/sha256.h"
#include "tools/l3c/build_id.h"
#include "tools/l3c/commands.h"
#include "tools/l3c/evidence_store.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#include "tools/l3c/progress_bar.h"
#include "tools/l3c/sweep/plots.h"
#include "tools/l3c/sweep/summary.h"
#include "tools/l3c/sweep/sweep.h"
#include "tools/l3c/sweep/table.h"

namespace l3c::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

int Tell(const support::Diagnostics& diagnostics, const Options& options) {
  std::cerr << (options.sarif ? diagnostics.RenderSarif() : diagnostics.Render(options.color));
  PrintJsonDiagnostics(diagnostics);
  return 1;
}

// AXIS=LABEL of --where: of every axis that is named, a point has one of the labels.
bool Wanted(const sweep::Point& point, const std::vector<std::string>& where) {
  std::map<std::string, bool> met;
  for (const std::string& pair : where) {
    const size_t equals = pair.find('=');
    const std::string axis = pair.substr(0, equals);
    const std::string& label = axis == "workload" ? point.workload : point.Setting(axis);
    met[axis] |= label == pair.substr(equals + 1);
  }
  return std::all_of(met.begin(), met.end(), [](const auto& axis) { return axis.second; });
}

// False after printing which label no point has.
bool KnowsLabels(const std::vector<sweep::Point>& points, const std::vector<std::string>& where) {
  for (const std::string& pair : where) {
    const size_t equals = pair.find('=');
    std::vector<std::string> known;
    for (const sweep::Point& point : points) {
      known.push_back("workload=" + point.workload);
      for (const auto& [axis, label] : point.settings) known.push_back(axis + "=" + label);
    }
    if (equals != std::string::npos && std::find(known.begin(), known.end(), pair) != known.end()) {
      continue;
    }
    const std::string closest = support::ClosestMatch(pair, known);
    return EnvironmentError(
        "--where " + pair + ": no point of the grid is like that",
        closest.empty() ? "--list prints them" : "did you mean '" + closest + "'?");
  }
  return true;
}

void List(const std::vector<sweep::Point>& points, bool json) {
  for (const sweep::Point& point : points) {
    sweep::Summary summary{point.key, point.workload, point.settings, 0, {}, ""};
    if (json) {
      ordered_json settings = ordered_json::object();
      for (const auto& [axis, label] : point.settings) settings[axis] = label;
      PrintJsonLine({{"event", "point"},
                     {"point", point.key},
                     {"workload", point.workload},
                     {"settings", settings}});
    } else {
      std::cout << point.key << "  " << summary.Label() << "\n";
    }
  }
  if (json) PrintJsonLine({{"event", "done"}, {"points", points.size()}});
}

// The file of all points, the plots, and the table.
bool WriteResults(const sweep::Results& results, const fs::path& folder,
                  std::vector<std::string>& plots) {
  std::string text = FirstLine(results).dump() + "\n";
  for (const sweep::Summary& point : results.points) text += Line(point).dump() + "\n";
  if (!WriteFile(folder / "results.jsonl", text)) return false;
  for (const sweep::Plot& plot : sweep::PlotsOf(results.points)) {
    const fs::path path = folder / plot.file;
    if (!WriteFile(path, plot.svg)) return false;
    plots.push_back(path.string());
  }
  return true;
}

}  // namespace

int Sweep(const Options& options) {
  support::Diagnostics diagnostics;
  const auto source = support::SourceFile::Read(options.file, diagnostics);
  if (!source) return Tell(diagnostics, options);
  diagnostics.set_source(&*source);
  std::optional<sweep::Grid> grid = sweep::ParseGrid(*source, diagnostics);
  if (!grid) return Tell(diagnostics, options);
  const SweepOptions& asked = options.sweep;
  if (asked.repeats) grid->repeats = *asked.repeats;
  if (asked.seconds) grid->seconds_limit = *asked.seconds;
  if (options.memory) grid->memory_limit = *options.memory;
  const fs::path folder =
      options.output.empty() ? fs::path("sweeps") / grid->name : fs::path(options.output);
  std::optional<std::vector<sweep::Point>> points =
      sweep::PointsOf(*grid, folder.string(), diagnostics);
  if (!points) return Tell(diagnostics, options);
  if (!KnowsLabels(*points, asked.where)) return 1;
  std::erase_if(*points, [&](const sweep::Point& point) { return !Wanted(point, asked.where); });
  if (asked.list) {
    List(*points, options.json);
    return 0;
  }

  if (!CanMakeFolder(folder)) return 1;
  std::error_code error;
  fs::create_directories(folder, error);
  const auto lock = runtime::FolderLock::Take(folder.string());
  if (!lock.ok()) {
    EnvironmentError(std::string(lock.status().message()));
    return 1;
  }
  const std::string log_path = (folder / "samples.jsonl").string();
  if (options.overwrite) fs::remove(log_path, error);
  const cost::EvidenceTarget target = ThisTarget();
  const sweep::SweepOrigin origin{
      grid->name, runtime::Sha256Of(BuildId()).substr(0, 16),
      Fingerprint(target) + ", " + std::to_string(target.cores) + " cores, " + target.cpu};
  absl::StatusOr<sweep::SampleLog> log = sweep::SampleLog::Open(log_path, origin);
  if (!log.ok()) {
    EnvironmentError(std::string(log.status().message()),
                     "--overwrite begins anew; -o names another folder");
    return 1;
  }

  // Steps are timed with nothing beside them; optimisations by the processor's time.
  const bool timed = grid->measure == sweep::Measure::kRun;
  const size_t cores = static_cast<size_t>(std::max<int64_t>(1, target.cores));
  sweep::MeasureOptions measure;
  measure.program = fs::read_symlink("/proc/self/exe", error).string();
  measure.folder = folder.string();
  measure.workers = timed ? 1 : asked.workers.value_or(std::min<size_t>(2, cores));
  measure.retry = asked.retry;
  const ProgressBar bar(!options.json && isatty(STDERR_FILENO) != 0);
  const auto on_sample = [&](const sweep::Sample& sample, const sweep::SweepProgress& progress) {
    const std::string what = std::to_string(progress.done) + " of " + std::to_string(progress.of) +
                             ", " + progress.last->workload;
    bar.Show(what, static_cast<double>(progress.done) / static_cast<double>(progress.of),
             progress.left_seconds);
    if (!options.json) return;
    ordered_json line = ordered_json::parse(sweep::PrintSample(sample));
    line["done"] = progress.done;
    line["of"] = progress.of;
    line["left_seconds"] = progress.left_seconds;
    PrintJsonLine(line);
    std::cout.flush();
  };
  const absl::StatusOr<bool> whole = MeasureAll(*grid, *points, measure, *log, on_sample);
  bar.Clear();
  if (!whole.ok()) {
    EnvironmentError(std::string(whole.status().message()),
                     "what was measured is kept; the same command goes on with it");
    return 1;
  }
  if (!*whole) {
    std::cerr << "interrupted: what was measured is kept in " << log_path
              << "; the same command goes on with it\n";
    return 130;
  }

  const sweep::Results results{origin.grid, origin.build, origin.machine,
                               Summarise(*points, log->samples(), grid->repeats)};
  std::vector<std::string> plots;
  if (!WriteResults(results, folder, plots)) return 1;
  const auto failed = static_cast<size_t>(
      std::count_if(results.points.begin(), results.points.end(),
                    [](const sweep::Summary& point) { return !point.failed.empty(); }));
  if (options.json) {
    for (const sweep::Summary& point : results.points) PrintJsonLine(Line(point));
    PrintJsonLine({{"event", "done"},
                   {"points", results.points.size()},
                   {"failed", failed},
                   {"results", (folder / "results.jsonl").string()},
                   {"plots", plots}});
    return 0;
  }
  std::cout << sweep::ResultTable(results.points);
  std::cout << results.points.size() << " points, " << failed << " failed, medians of "
            << grid->repeats << " repeats ± half the distance of the quartiles\n"
            << "results and plots are in " << folder.string() << "\n";
  return 0;
}

}  // namespace l3c::tools
