// l3c sweep GRID: measures what is not measured yet, one child process at a time or two, and keeps
// every sample as it comes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/l3c/sweep/figures.h"
#include "tools/l3c/sweep/grid.h"
#include "tools/l3c/sweep/points.h"
#include "tools/l3c/sweep/sample.h"

namespace l3c::tools::sweep {

struct SweepProgress {
  size_t done = 0;  // measurements of all points and repeats, those of earlier times included
  size_t of = 0;
  double left_seconds = 0;  // by what the points have taken so far; 0: not known yet
  const Point* last = nullptr;
};

struct MeasureOptions {
  std::string program;  // l3c
  std::string folder;   // of the sweep, for scratch
  size_t workers = 1;
  bool retry = false;  // points that failed before are tried again
};

// In rounds: every point once, then every point a second time, so that what drifts hits all alike.
// A point that fails is not repeated. False where Ctrl-C ended it; an error where the log cannot be
// written.
absl::StatusOr<bool> MeasureAll(
    const Grid& grid, const std::vector<Point>& points, const MeasureOptions& options,
    SampleLog& log, const std::function<void(const Sample&, const SweepProgress&)>& on_sample);

}  // namespace l3c::tools::sweep
