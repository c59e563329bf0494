// What the samples of a point come to, as a line of results.jsonl:
//
//   {"event":"point","point":"3f…","workload":"cnn","settings":{"search":"egraph",…},"repeats":5,
//    "figures":{"step_ms":{"median":9.1,"low":9.0,"high":9.3,"samples":[…]},"kernels":17,…}}
//   {"event":"point","point":"90…",…,"repeats":0,"failed":"time: …"}
//
// Figures that are measured have their samples, those that are the same every time one value; low
// and high are the quartiles.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tools/l3c/sweep/points.h"
#include "tools/l3c/sweep/sample.h"

namespace l3c::tools::sweep {

struct Summary {
  std::string point;
  std::string workload;
  std::vector<std::pair<std::string, std::string>> settings;
  size_t repeats = 0;
  std::map<std::string, std::vector<double>> figures;
  std::string failed;

  const std::string& Setting(const std::string& axis) const;  // "" where it has none
  // The median; nothing where it was not measured.
  std::optional<double> Median(std::string_view figure) const;
  // Workload and settings, in one line.
  std::string Label() const;
};

// In the order of the points; samples beyond `repeats` of a point, and of other points, are left
// out.
std::vector<Summary> Summarise(const std::vector<Point>& points, const std::vector<Sample>& samples,
                               int64_t repeats);

nlohmann::ordered_json Line(const Summary& summary);

// A finished sweep: the first line of its results, and its points.
struct Results {
  std::string grid;
  std::string build;
  std::string machine;
  std::vector<Summary> points;
};
nlohmann::ordered_json FirstLine(const Results& results);
// `path`: results.jsonl or the folder that holds it. Errors name the file and the line.
absl::StatusOr<Results> ReadResults(const std::string& path);

}  // namespace l3c::tools::sweep
