// The points of a grid: every workload under every setting that applies to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/support/diagnostics.h"
#include "tools/l3c/sweep/grid.h"

namespace l3c::tools::sweep {

// What a workload is, by its extension: that decides which axes apply.
enum class WorkloadKind : uint8_t {
  kProgram,     // .l3 … .l0: optimised or run
  kEggProgram,  // .egg: saturated
  kGraph        // .json: extracted from
};

struct Point {
  std::string key;       // 16 hexadecimal digits of all that its figures depend on but the machine
  std::string workload;  // its name
  std::vector<std::pair<std::string, std::string>> settings;  // axis → label, of axes that apply
  WorkloadKind kind = WorkloadKind::kProgram;
  std::string file;                 // that is read: the workload's own, or where `text` is written
  std::optional<std::string> text;  // of a program with another shape
  std::vector<std::string> arguments;  // behind the file's name

  const std::string& Setting(const std::string& axis) const;  // "" where it does not apply
};

// In the order of the grid: workloads, then its axes, the last one turning fastest. Nothing after
// reporting what makes no sense, such as a shape that no number of a workload's text has. Texts of
// other shapes are to be written to `folder`/programs before a point is measured.
std::optional<std::vector<Point>> PointsOf(const Grid& grid, const std::string& folder,
                                           support::Diagnostics& diagnostics);

}  // namespace l3c::tools::sweep
