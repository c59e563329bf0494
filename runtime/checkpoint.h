// Checkpoints: everything from which a run goes on exactly as if it had not stopped.
//
//   OUTPUT/checkpoints/step-000000469/parameters.safetensors   the plan's parameters
//                                    /state.safetensors        optimiser state, other state that
//                                                              kernels write
//                                    /state.json               plan digest, step, cursor, sums
//                                    /SHA256SUMS               of the three, as sha256sum writes it
//   OUTPUT/checkpoints/latest                                  name of the newest folder
//
// A checkpoint is written aside, synced, and renamed into its place, and renamed away before it is
// removed; so a crash at any moment leaves only whole ones, the one before it among them. A failure
// to write one leaves no part of it. Data order and random numbers need no state of their own: they
// are functions of the plan's seeds and of the step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/memory.h"
#include "runtime/metrics.h"

namespace l3c::runtime {

// What of a run is not in the plan's buffers.
struct RunState {
  std::string plan_digest;
  std::map<std::string, std::vector<int64_t>> regions;  // the control unit's read-write regions
  std::map<std::string, Metrics::Split> splits;
};

std::string PlanDigest(const l0::Plan& plan);  // SHA-256 of the plan's text

class CheckpointWriter {
 public:
  // Makes the folder and tries it out: an error here comes before any training.
  // With `resumed` (a folder inside it, or ""), that checkpoint counts as written by this run.
  static absl::StatusOr<CheckpointWriter> Open(const std::string& output, int keep,
                                               const std::string& resumed);

  // Returns the folder. Removes this run's older checkpoints but for `keep`, and all that an
  // earlier run left there.
  absl::StatusOr<std::string> Write(const l0::Plan& plan, const Memory& memory,
                                    const RunState& state);

 private:
  absl::StatusOr<std::string> WriteAs(const std::string& name, const l0::Plan& plan,
                                      const Memory& memory, const RunState& state);

  std::string folder_;  // OUTPUT/checkpoints
  size_t keep_ = 2;
  std::vector<std::string> written_;  // names, oldest first
};

// `path` is a checkpoint's folder, or the output folder of a run, which stands for its newest.
// NotFound where a run has not come to its first.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);

// Both readers check the sums first. The error for a damaged checkpoint names the newest sound one
// that lies beside it and is older, if there is any, and says how to go on from that.
//
// Checks that the checkpoint is of this very plan (PlanDigest gives its digest), then fills the
// buffers.
absl::StatusOr<RunState> ReadCheckpoint(const std::string& folder, const l0::Plan& plan,
                                        const std::string& digest, const Memory& memory);
// Parameters, and other state as far as both have it; the plan may be another one.
absl::Status ReadWeights(const std::string& folder, const l0::Plan& plan, const Memory& memory);

}  // namespace l3c::runtime
