#include "tools/l3c/observe.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cost/probe.h"
#include "nlohmann/json.hpp"
#include "tools/l3c/evidence_store.h"
#include "tools/l3c/files.h"
#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

constexpr size_t kFewestLaunches = 16;
constexpr double kShortest = 2e-6;  // seconds

// The evidence that the run's plan was made by, if it is of this machine.
std::optional<cost::Evidence> UsedEvidence(const Options& options) {
  ChosenEvidence chosen;
  if (!ChooseEvidence(options.evidence, chosen)) return std::nullopt;
  return std::move(chosen.evidence);
}

}  // namespace

std::vector<cost::EvidencePoint> Observed(const l0::Plan& plan, const runtime::Timeline& timeline) {
  std::map<l0::KernelId, std::vector<double>> launches;
  for (size_t s = 0; s < timeline.streams(); ++s) {
    for (const runtime::TimelineSpan& span : timeline.Spans(static_cast<l0::StreamId>(s))) {
      const l0::Command& command = plan.sequences[span.sequence].commands[span.command];
      if (command.kind != l0::CommandKind::kLaunch) continue;
      launches[command.kernel].push_back(static_cast<double>(span.end - span.begin) * 1e-9);
    }
  }
  std::map<std::pair<cost::Probe, cost::Extents>, cost::Measurement> observed;
  for (auto& [kernel, seconds] : launches) {
    const std::optional<cost::Likeness> like = cost::ProbeLike(plan.kernels[kernel]);
    if (!like || seconds.size() < kFewestLaunches) continue;
    // Products of pairs are like a probe where they are made in tiles.
    const bool pairs = l0::CountWork(plan.kernels[kernel]).bf16_dots > 0;
    if (pairs && like->probe != cost::Probe::kTiles) continue;
    seconds.erase(seconds.begin(), seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 4));
    std::sort(seconds.begin(), seconds.end());
    const size_t n = seconds.size();
    const double quartile = seconds[n / 4];
    if (quartile < kShortest) continue;
    const cost::Measurement measured = {quartile, (seconds[n * 3 / 4] - quartile) / quartile,
                                        static_cast<int>(n)};
    const auto [at, first] = observed.try_emplace(std::pair(like->probe, like->extents), measured);
    if (!first && measured.value < at->second.value) at->second = measured;
  }
  std::vector<cost::EvidencePoint> points;
  for (const auto& [like, measured] : observed) {
    points.push_back({std::string(cost::ProbeName(like.first)), like.second, measured});
  }
  return points;
}

bool CanObserve(const Options& options) {
  if (options.engine != "jit") {
    return EnvironmentError("--observe needs compiled kernels",
                            "leave out --engine " + options.engine);
  }
  const cost::EvidenceTarget here = ThisTarget();
  if (options.threads > 0 && options.threads != here.cores) {
    return EnvironmentError("--observe needs a run on all " + std::to_string(here.cores) +
                                " cores, as costs are of all of them",
                            "leave out --threads");
  }
  const std::optional<cost::Evidence> used = UsedEvidence(options);
  if (!used || Fingerprint(used->target) != Fingerprint(here)) {
    return EnvironmentError("--observe adds to a calibration of this machine, and plans use none",
                            "l3c calibrate, then run again");
  }
  return true;
}

bool Observe(const l0::Plan& plan, const runtime::Timeline& timeline, const Options& options) {
  std::optional<cost::Evidence> evidence = UsedEvidence(options);
  const std::optional<EvidenceStore> opened = EvidenceStore::Open();
  if (!evidence || !opened) return false;
  EvidenceStore store = *opened;
  const std::vector<cost::EvidencePoint> points = Observed(plan, timeline);
  if (points.empty()) {
    return EnvironmentError(
        "nothing was observed: no kernel ran " + std::to_string(kFewestLaunches) + " times",
        "train for more steps");
  }
  for (const cost::EvidencePoint& point : points) {
    std::erase_if(evidence->points, [&](const cost::EvidencePoint& old) {
      return old.probe == point.probe && old.extents == point.extents;
    });
  }
  evidence->points.insert(evidence->points.end(), points.begin(), points.end());
  const std::optional<std::filesystem::path> path = store.Add(*evidence);
  if (!path) return false;
  if (options.json) {
    PrintJsonLine({{"event", "evidence"},
                   {"path", path->string()},
                   {"revision", evidence->revision},
                   {"observed", points.size()}});
  } else {
    std::cout << points.size() << " shapes observed: evidence revision " << evidence->revision
              << "; plans use it with --evidence " << evidence->revision
              << ", or for good after l3c calibrate --use " << evidence->revision << "\n";
  }
  return true;
}

}  // namespace l3c::tools
