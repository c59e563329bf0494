// The figures that sweeps keep: their names in files, what tables call them, and whether they are
// measured, so that they vary from repeat to repeat, or the same every time.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/l3c/sweep/grid.h"
#include "tools/l3c/sweep/points.h"

namespace l3c::tools::sweep {

struct Figure {
  std::string_view name;   // in files: "optimise_s"
  std::string_view title;  // in tables and plots: "optimise, ms"
  double scale = 1;        // from the unit of the file to that of the title
  bool measured = false;
};
std::span<const Figure> AllFigures();  // in the order of tables
const Figure* FindFigure(std::string_view name);

// A child process of a measurement: the arguments of l3c and what its lines become.
struct Step {
  enum class Kind : uint8_t { kOptimise, kRun, kSaturate, kExtract } kind = Kind::kOptimise;
  std::vector<std::string> arguments;
};
// What measuring a point once takes. The figures that are the same every time are taken with the
// first repeat. `scratch`: a folder that need not be there.
std::vector<Step> StepsOf(const Grid& grid, const Point& point, int64_t repeat,
                          const std::string& scratch);

// Adds what the lines of --json say, and what is known of the process.
absl::Status ReadFigures(Step::Kind kind, const std::string& output, double cpu_seconds,
                         int64_t peak_rss_bytes, std::map<std::string, double>& figures);

}  // namespace l3c::tools::sweep
