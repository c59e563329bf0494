// Runs one control unit: the unit on the calling thread, each stream that it gives work to on a
// thread of its own.
//
// A stream pops a descriptor, runs the commands of its sequence in order, and pops the next.
// Streams meet only in tokens and queues. The first failure (a checkpoint that cannot be written,
// say) closes all of them; every thread then returns, and Run reports it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "layers/l0/control_code.h"
#include "layers/l0/control_interpreter.h"
#include "layers/l0/plan.h"
#include "runtime/batches.h"
#include "runtime/descriptor_queue.h"
#include "runtime/events.h"
#include "runtime/kernel_table.h"
#include "runtime/memory.h"
#include "runtime/metrics.h"
#include "runtime/region_memory.h"
#include "runtime/semaphore.h"
#include "runtime/session.h"
#include "runtime/timeline.h"
#include "runtime/worker_team.h"

namespace l3c::runtime {

class Engine : private l0::ControlHost {
 public:
  using Regions = RegionMemory::Words;
  // Called by a `checkpoint` command with the unit's read-write regions.
  using Save = std::function<absl::Status(const Regions& regions)>;

  struct Parts {
    const l0::Plan& plan;
    const l0::ControlUnit& unit;  // one of the plan's
    const Memory& memory;
    const KernelTable& kernels;
    WorkerTeam& team;
    // By SamplerId; null where the unit loads none. Each stream that loads has a copy.
    const std::vector<std::unique_ptr<Batches>>& batches;
    Metrics& metrics;
    EventSink& sink;
    std::atomic<int64_t>& signals;  // the host's region `signals`
    Save save;
    Timeline* timeline = nullptr;  // may be null
  };

  // `regions` replaces initial words of read-write regions (those of a checkpoint).
  // FailedPrecondition when a kernel has no code or the regions do not fit.
  static absl::StatusOr<std::unique_ptr<Engine>> Make(Parts parts, const Regions& regions);

  // Once. Returns when the unit has terminated and all that it pushed is done.
  absl::Status Run();

  // The unit saw the host's stop signal.
  bool stopped() const { return stopped_; }
  double seconds() const { return seconds_; }
  // Of one stream's time: spent in sequences that report another split than training's, and in
  // checkpoints; the largest of any stream.
  double other_seconds() const;
  std::vector<StreamUse> Use() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A launch, with its arguments' addresses in place.
  struct BoundLaunch {
    KernelFn function = nullptr;
    std::vector<void*> params;
    int64_t blocks = 1;
  };
  struct StreamState {
    std::unique_ptr<DescriptorQueue> queue;        // null: the unit gives it no work
    std::unique_ptr<DescriptorQueue> completions;  // may be null
    std::map<l0::SamplerId, Batches> batches;      // that it loads
    double busy = 0, waiting = 0, other = 0;       // seconds; written by the stream's own thread
  };

  explicit Engine(Parts parts) : p_(std::move(parts)) {}
  absl::Status Bind(const Regions& regions);

  bool Push(l0::RegionId queue, int64_t descriptor) override;
  std::optional<int64_t> Pop(l0::RegionId queue) override;

  void RunStream(l0::StreamId id);
  // False when the run is over.
  bool RunSequence(l0::StreamId id, l0::SequenceId sequence, int64_t argument, int64_t descriptor);
  bool RunCommand(StreamState& stream, const l0::Command& command, const BoundLaunch& launch,
                  int64_t argument, int64_t descriptor);
  absl::Status RunLoad(StreamState& stream, const l0::Command& command, int64_t argument);
  void RunReport(const l0::Command& command, int64_t argument);
  void RunPublish(const l0::Command& command, int64_t argument);
  absl::Status RunCheckpoint();
  void TellProgress(const std::string& split, Time now);

  void Fail(absl::Status status);

  Parts p_;
  std::optional<RegionMemory> regions_;
  std::vector<l0::StreamId> region_stream_;  // queues: the stream at the other end
  std::vector<StreamState> streams_;
  std::vector<std::unique_ptr<Semaphore>> tokens_;
  std::vector<std::vector<BoundLaunch>> launches_;  // by sequence, then command
  std::vector<bool> other_sequence_;                // does not train

  // Reports, events and their figures, one at a time.
  std::mutex events_;
  // Per split: the rows of batches not yet reported, by the argument of their descriptor.
  std::map<std::string, std::map<int64_t, int64_t>> loaded_rows_;
  struct Pace {
    Time period_begin, told, mark;
    int64_t mark_samples = 0, run_samples = 0;
    double rate = 0;
  };
  std::map<std::string, Pace> pace_;
  Time begin_;

  std::mutex failing_;
  absl::Status failure_;
  double seconds_ = 0;
  bool stopped_ = false;
};

}  // namespace l3c::runtime
