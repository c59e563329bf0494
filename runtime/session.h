// Running a plan: the runtime's front door.
//
//   RunOptions options;
//   options.output = "runs/mnist";
//   absl::StatusOr<RunResult> result = Train(plan, kernels, options, sink);
//
// A run allocates the plan's pools, reads its data, runs its init ops (or a checkpoint's state),
// and then interprets its control unit on the calling thread while the plan's streams run on
// threads of their own. Results do not depend on the number of threads.
//
// The plan must have passed l0::VerifyPlan. What can still fail is the world outside: memory,
// files, folders, data that is not what the plan says. Each failure is a status whose message names
// the file or resource and the values; nothing has been trained by then, except when a checkpoint
// cannot be written or a file of data that is read by the batch fails. The checkpoint before stays.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "layers/l0/plan.h"
#include "runtime/events.h"
#include "runtime/file_reader.h"
#include "runtime/kernel_table.h"
#include "runtime/timeline.h"

namespace l3c::runtime {

struct RunOptions {
  int threads = 0;                          // workers that share a kernel; 0: one a CPU
  std::map<std::string, std::string> data;  // source name → folder, in place of the plan's path
  bool synthetic = false;                   // random data of the declared domains, no files
  FileReader::Kind reader = FileReader::Kind::kAuto;
  // That a split of the data may take in memory; see data_set.h. Nothing: a quarter of what is
  // available.
  std::optional<int64_t> resident_bytes;
  Timeline* timeline = nullptr;  // filled in by the run; may be null
  std::string output;            // folder for checkpoints; "": none are written
  int keep_checkpoints = 2;
  // Train: continue from this checkpoint. Evaluate: the weights. A checkpoint's folder, or a folder
  // that holds `checkpoints/` (then its newest sound one is taken).
  std::string checkpoint;
  // Train: where `checkpoint` is a run's folder without one, begin at the beginning.
  bool or_from_start = false;
  // PlanDigest of the plan, where it is known; "": it is computed, which takes the kernels' bodies.
  std::string plan_digest;
};

struct StreamUse {
  std::string stream;
  double busy_seconds = 0;     // in commands
  double waiting_seconds = 0;  // for tokens of other streams
};

struct RunResult {
  std::vector<Value> metrics;  // the last published figures: "loss", "accuracy" of split "test" as
                               // they are named, those of "train" as "train_loss", …
  int64_t steps = 0;           // training batches done, from the very first
  int64_t samples = 0;         // rows of them
  double seconds = 0;          // of the control unit, all included
  double train_seconds = 0;    // without evaluations and checkpoints
  double samples_per_second = 0;  // rows trained in this run / train_seconds (Evaluate: / seconds)
  std::vector<StreamUse> streams;
  std::string weights_sha256;  // over the parameters' bytes in the plan's order, in hex
  bool finite = true;  // no weight and no figure above is NaN or infinite; else it has diverged
  bool interrupted = false;  // RequestStop ended it before its work was done
  std::string checkpoint;    // folder of the last checkpoint written, or ""
};

// Runs plan.control[0]. No two runs write to one output folder at a time: the second is refused
// with FailedPrecondition. A run that diverges goes on to its end and saves what it has; see
// `finite`.
absl::StatusOr<RunResult> Train(const l0::Plan& plan, const KernelTable& kernels,
                                const RunOptions& options, EventSink& sink);

// Runs the control unit named "evaluate" on the weights of options.checkpoint (or, without one, on
// the initial weights). The checkpoint may come from another plan: its parameters must have the
// names, types and shapes of this plan's.
absl::StatusOr<RunResult> Evaluate(const l0::Plan& plan, const KernelTable& kernels,
                                   const RunOptions& options, EventSink& sink);

// Asks the run in progress to stop: it finishes the steps under way, writes a checkpoint and
// returns with `interrupted`. Async-signal-safe. With no run in progress, the next one stops at its
// first check; a run that stops has used the request up.
void RequestStop();

}  // namespace l3c::runtime
