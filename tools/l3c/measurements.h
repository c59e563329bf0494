// Times of kernels on this machine, for `l3c calibrate`.
//
// A measurement has several samples, each of as many calls as take a millisecond; cost/evidence.h
// says what becomes of them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/llvm/jit.h"
#include "cost/evidence.h"
#include "cost/machine.h"
#include "cost/probe.h"
#include "runtime/worker_team.h"

namespace l3c::tools {

class Measurements {
 public:
  static absl::StatusOr<std::unique_ptr<Measurements>> Create(const cost::CpuMachine& machine);

  // `progress` is called with what is being measured and the share that is done, 0 … 1.
  using Progress = std::function<void(const std::string& what, double share)>;
  // All figures but the storage's, and as many points as `seconds` allow: coarse ones first.
  absl::Status Run(double seconds, const Progress& progress, cost::Evidence& evidence);

 private:
  Measurements(const cost::CpuMachine& machine, std::unique_ptr<llvm_backend::Jit> jit);

  // The kernel under the schedule that the analytical model takes, compiled under a new name.
  absl::StatusOr<l0::Kernel> Compile(l0::Kernel kernel, bool schedule);
  cost::Measurement Time(const l0::Kernel& kernel, bool all_cores);
  absl::StatusOr<cost::Measurement> OperationSeconds(std::string_view op, int few, int many);
  absl::StatusOr<cost::Measurement> ReadBandwidth(int64_t bytes, bool all_cores);
  absl::StatusOr<cost::Measurement> MemoryBandwidth();
  // Those of products of bfloat16 that this machine has.
  absl::Status PairFigures(cost::Evidence& evidence);
  cost::Measurement LaunchSeconds();
  absl::Status Figures(const Progress& progress, cost::Evidence& evidence);

  const cost::CpuMachine machine_;
  const cost::CpuCostModel model_;
  std::unique_ptr<llvm_backend::Jit> jit_;
  runtime::WorkerTeam team_;
  int64_t compiled_ = 0;
};

// Of a file of `bytes` in `folder`, written, brought to the disk and read back past the page cache;
// nothing where that cannot be done.
std::optional<cost::Measurement> StorageBandwidth(const std::string& folder, int64_t bytes);

}  // namespace l3c::tools
