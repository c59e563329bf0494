// What was measured on one machine, as a file that is never changed once it is written.
//
//   { "format": "l3c evidence", "version": 1, "revision": 2,
//     "target": { "fingerprint": "9c1f…", "cpu": "…", "cores": 2, "lanes": 16, "l2_bytes": …, … },
//     "figures": { "fma_flops": { "value": 1.7e11, "spread": 0.02, "samples": 7 }, … },
//     "points": [ { "probe": "product ab", "extents": [64, 256, 64], "seconds": …, … }, … ] }
//
// Figures are those of kFigures, in their units; points are times of the probes of cost/probe.h. A
// value is the lower quartile of `samples` times, or what follows from it, since whatever else runs
// on a machine only adds; the spread is the distance of the quartiles over it. A file is refused
// when it is of another machine (its fingerprint is another), of a newer version, not whole, or has
// a figure that no machine has.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace l3c::cost {

// What tells two machines apart for the figures below.
struct EvidenceTarget {
  std::string cpu;       // as the system names it
  std::string features;  // "avx2 avx512f fma", ascending
  int64_t cores = 1;     // that kernels may use
  int lanes = 4;         // f32 lanes of a vector register
  int64_t l2_bytes = 0;  // of a core
  int64_t l3_bytes = 0;  // that a core can reach
};
// 16 hexadecimal digits.
std::string Fingerprint(const EvidenceTarget& target);

struct Measurement {
  double value = 0;
  double spread = 0;
  int samples = 0;
};

// A figure, its unit, and what a machine can have.
struct FigureLimits {
  std::string_view name;
  std::string_view unit;
  double low;
  double high;
  bool optional = false;  // of what not every machine has
};
// Times of operations are those of one core for a full vector of f32, from the first cache level.
inline constexpr FigureLimits kFigures[] = {
    {"fma_flops", "FLOP/s", 1e8, 1e14},    // of a core, a multiply-add counted as two
    {"simple_seconds", "s", 1e-12, 1e-6},  // add, mul, max, …
    {"divide_seconds", "s", 1e-12, 1e-6},  //
    {"square_root_seconds", "s", 1e-12, 1e-6},
    {"exp2_seconds", "s", 1e-12, 1e-5},
    {"log2_seconds", "s", 1e-12, 1e-5},
    {"sine_seconds", "s", 1e-12, 1e-5},
    {"l2_bandwidth", "B/s", 1e8, 1e14},       // of a core
    {"l3_bandwidth", "B/s", 1e8, 1e14},       // of a core
    {"l3_reach_bytes", "B", 1e5, 1e11},       // up to which all cores draw from it, not from memory
    {"memory_bandwidth", "B/s", 1e8, 1e14},   // of all cores together
    {"launch_seconds", "s", 1e-9, 1e-2},      // to share a kernel among all cores and wait for all
    {"storage_bandwidth", "B/s", 1e5, 1e13},  // of a file that is read from its beginning to its
                                              // end
    {"bf16_dot_seconds", "s", 1e-12, 1e-6, true},      // of two products a lane, added to sums
    {"tile_product_seconds", "s", 1e-11, 1e-6, true},  // of 16×16 sums and 16 pairs of each factor
};

struct EvidencePoint {
  std::string probe;  // ProbeName of cost/probe.h
  std::array<int64_t, 3> extents{};
  Measurement seconds;
};

struct Evidence {
  static constexpr int kVersion = 1;
  EvidenceTarget target;
  int64_t revision = 1;
  std::map<std::string, Measurement> figures;  // of kFigures, each that is not optional
  std::vector<EvidencePoint> points;
};

std::string PrintEvidence(const Evidence& evidence);
// Refuses, with the reason, what is no whole file of a version that is known, what names another
// fingerprint than `fingerprint`, and what no machine has.
absl::StatusOr<Evidence> ParseEvidence(std::string_view text, std::string_view fingerprint);

}  // namespace l3c::cost
