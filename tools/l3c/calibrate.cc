// l3c calibrate: this machine's figures, measured, for the costs of plans.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "layers/l1/discover.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/commands.h"
#include "tools/l3c/evidence_store.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"
#ifdef L3C_HAS_LLVM
#include "tools/l3c/measurements.h"
#endif
#include "tools/l3c/progress.h"
#include "tools/l3c/progress_bar.h"

namespace l3c::tools {
namespace {

using Clock = std::chrono::steady_clock;

#ifdef L3C_HAS_LLVM

constexpr int64_t kStorageBytes = int64_t{64} << 20;

// `seconds` is what the shapes were given.
void PrintFigures(const cost::Evidence& evidence, double seconds) {
  std::printf("%s, %lld cores, %s\n", evidence.target.cpu.c_str(),
              static_cast<long long>(evidence.target.cores), evidence.target.features.c_str());
  for (const cost::FigureLimits& limits : cost::kFigures) {
    const auto found = evidence.figures.find(std::string(limits.name));
    if (found == evidence.figures.end()) continue;
    const cost::Measurement& m = found->second;
    std::printf("  %-22s %10.4g %-7s spread %.1f %%, %d samples\n",
                std::string(limits.name).c_str(), m.value, std::string(limits.unit).c_str(),
                m.spread * 100, m.samples);
  }
  for (cost::Probe probe : cost::kProbes) {
    size_t points = 0;
    double worst = 0;
    for (const cost::EvidencePoint& point : evidence.points) {
      if (point.probe != cost::ProbeName(probe)) continue;
      ++points;
      worst = std::max(worst, point.seconds.spread);
    }
    const std::string name(cost::ProbeName(probe));
    if (points == 0) {
      // Only where the CPU has tiles are those measured.
      if (probe == cost::Probe::kTiles && !evidence.figures.contains("tile_product_seconds")) {
        continue;
      }
      std::printf("  %-22s no shape fitted into --seconds %g: its costs stay analytical\n",
                  name.c_str(), seconds);
      continue;
    }
    std::printf("  %-22s %10zu shapes, spread up to %.1f %%\n", name.c_str(), points, worst * 100);
  }
}

// Whether so many times were far apart that something else must have run.
bool WasDisturbed(const cost::Evidence& evidence) {
  constexpr double kFar = 0.5;     // of the lower quartile
  constexpr double kMany = 0.125;  // of all measurements
  size_t far = 0;
  for (const auto& [name, m] : evidence.figures) far += m.spread > kFar ? 1 : 0;
  for (const cost::EvidencePoint& point : evidence.points) {
    far += point.seconds.spread > kFar ? 1 : 0;
  }
  return static_cast<double>(far) >
         kMany * static_cast<double>(evidence.figures.size() + evidence.points.size());
}

int Measure(EvidenceStore& store, const Options& options) {
  const Clock::time_point start = Clock::now();
  cost::CpuMachine machine;
  for (const l1::SystemNode& node : l1::DiscoverHost().nodes) {
    if (node.kind == l1::NodeKind::kCompute) machine = cost::MachineOf(node);
  }
  cost::Evidence evidence;
  evidence.target = ThisTarget();
  {
    const ProgressBar bar(!options.json && isatty(STDERR_FILENO) != 0);
    const auto measurements = Measurements::Create(machine);
    absl::Status status = measurements.status();
    if (status.ok()) {
      status =
          (*measurements)
              ->Run(
                  options.calibrate_seconds,
                  [&](const std::string& what, double share) { bar.Show(what, share); }, evidence);
    }
    if (!status.ok()) {
      EnvironmentError("calibration failed: " + std::string(status.message()),
                       "run it again when less else runs");
      return 1;
    }
    bar.Show("storage", 0.99);
    const auto storage = StorageBandwidth(store.folder().string(), kStorageBytes);
    if (!storage) {
      EnvironmentError(store.folder().string() + ": cannot be written",
                       "set XDG_DATA_HOME to a folder with 64 MiB to spare");
      return 1;
    }
    evidence.figures["storage_bandwidth"] = *storage;
  }
  const std::optional<std::filesystem::path> path = store.Add(evidence);
  if (!path) return 1;
  // What is refused when it is read must not be written in silence.
  if (const auto again = store.Read(evidence.revision); !again.ok()) {
    EnvironmentError(path->string() + ": " + std::string(again.status().message()),
                     "run it again when less else runs");
    return 1;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const bool current = store.Current() == evidence.revision;
  if (WasDisturbed(evidence)) {
    std::cerr << "warning: the machine was busy: times of the same work lie far apart\n"
                 "help: l3c calibrate again when less else runs\n";
  }
  if (options.json) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::object();
    for (const auto& [name, m] : evidence.figures) figures[name] = m.value;
    PrintJsonLine({{"event", "evidence"},
                   {"path", path->string()},
                   {"fingerprint", Fingerprint(evidence.target)},
                   {"revision", evidence.revision},
                   {"current", current},
                   {"figures", figures},
                   {"points", evidence.points.size()},
                   {"seconds", seconds}});
    PrintJsonLine({{"event", "done"}});
    return 0;
  }
  PrintFigures(evidence, options.calibrate_seconds);
  std::cout << "measured in " << Duration(seconds) << ": " << path->string() << "\n";
  if (current) {
    std::cout << "plans use it from now on; --evidence none goes without\n";
  } else {
    std::cout << "plans use revision " << *store.Current() << " as before; 'l3c calibrate --use "
              << evidence.revision << "' takes this one\n";
  }
  return 0;
}
#else
int Measure(EvidenceStore&, const Options&) {
  EnvironmentError("this build has no kernel compiler, so nothing can be measured",
                   "costs are analytical");
  return 1;
}
#endif

}  // namespace

int Calibrate(const Options& options) {
  std::optional<EvidenceStore> store = EvidenceStore::Open();
  if (!store) {
    EnvironmentError("there is no place for evidence", "set XDG_DATA_HOME to an absolute path");
    return 1;
  }
  if (!options.use_evidence) return Measure(*store, options);
  if (!store->Use(*options.use_evidence)) return 1;
  if (options.json) {
    PrintJsonLine({{"event", "done"}, {"revision", *options.use_evidence}});
  } else {
    std::cout << "plans use revision " << *options.use_evidence << " from now on\n";
  }
  return 0;
}

}  // namespace l3c::tools
