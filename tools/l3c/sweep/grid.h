// The text of a sweep: which programs, under which settings, measured how.
//
//   # l3c grid v1
//   grid ablation {
//       workloads: ["../workloads/mlp_small_sgd.l2", "../workloads/cnn.l2"]
//       search:    [off, greedy, egraph]
//       without:   [none, "fusion", each("kernel_grouping")]
//       budget:    [default, (nodes: 5K), (nodes: 20K, work: 1M)]
//       shapes:    [given, (128: 32), (256: 512)]
//       measure:   run(steps: 30, repeats: 5)
//       limits:    (time: 60s, memory: 4GB)
//   }
//
//   grid      = "grid" NAME "{" { field [","] } "}"
//   field     = "workloads" ":" "[" STRING { "," STRING } "]"
//             | "search"    ":" "[" ( off | greedy | egraph ), … "]"
//             | "numerics"  ":" "[" ( exact | reassoc | fast ), … "]"
//             | "memory"    ":" "[" ( none | BYTES ), … "]"
//             | "evidence"  ":" "[" ( current | none | INTEGER | STRING ), … "]"
//             | "rules"     ":" "[" ( none | STRING ), … "]"
//             | "without"   ":" "[" ( none | STRING | each "(" STRING ")" ), … "]"
//             | "budget"    ":" "[" ( default | "(" NAME ":" COUNT { "," … } ")" ), … "]"
//             | "shapes"    ":" "[" ( given | "(" INTEGER ":" INTEGER { "," … } ")" ), … "]"
//             | "extractor" ":" "[" ( tree | greedy | exact ), … "]"
//             | "measure"   ":" ( optimise | run ) [ "(" [ steps: N ] [ repeats: N ] [ threads: N ]
//                                                        [ seed: N ] ")" ]
//             | "limits"    ":" "(" [ time: SECONDS ] [ memory: BYTES ] ")"
//
// Paths are relative to the grid's folder. A shape names whole numbers of the workload's text and
// what stands in their place: the program that then is searched is an ordinary one, parsed and
// verified like any other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/support/diagnostics.h"
#include "layers/support/source.h"

namespace l3c::tools::sweep {

// A value of an axis: what tables call it, and the arguments of the command line that make it so.
struct Value {
  std::string label;
  std::vector<std::string> arguments;
  std::vector<std::pair<int64_t, int64_t>> shapes;  // of the axis "shapes"
  support::Span span;
};

struct Axis {
  std::string name;
  std::vector<Value> values;
};

struct Workload {
  std::string path;  // as it can be opened from here
  std::string name;  // the file's, without its folders and extension
  support::Span span;
};

enum class Measure : uint8_t { kOptimise, kRun };

struct Grid {
  std::string name;
  std::vector<Workload> workloads;
  std::vector<Axis> axes;  // in the order of the grammar; those that are not given are left out
  Measure measure = Measure::kOptimise;
  int64_t steps = 30;
  int64_t repeats = 5;
  int64_t threads = 2;
  int64_t seed = 0;
  double seconds_limit = 300;            // of a child process
  int64_t memory_limit = 4'000'000'000;  // resident bytes of a child process
};

// Beyond this many points a grid is taken for a mistake.
inline constexpr size_t kMaxPoints = 100'000;

std::optional<Grid> ParseGrid(const support::SourceFile& source, support::Diagnostics& diagnostics);

}  // namespace l3c::tools::sweep
