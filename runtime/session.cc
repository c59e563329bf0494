#include "runtime/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "layers/l0/control_verify.h"
#include "runtime/batches.h"
#include "runtime/checkpoint.h"
#include "runtime/cpu_set.h"
#include "runtime/data_set.h"
#include "runtime/engine.h"
#include "runtime/folder_lock.h"
#include "runtime/init.h"
#include "runtime/memory.h"
#include "runtime/message.h"
#include "runtime/metrics.h"
#include "runtime/sha256.h"
#include "runtime/worker_team.h"

namespace l3c::runtime {
namespace {

// The region `signals` of whichever unit runs. Written by signal handlers.
std::atomic<int64_t> stop_requested{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Splits in memory, and the samplers that read them.
struct Data {
  std::unique_ptr<FileReader> reader;
  std::vector<std::unique_ptr<SplitData>> splits;
  std::vector<std::unique_ptr<Batches>> batches;  // by SamplerId
};

// Reads what the unit's sequences load, each split once.
absl::StatusOr<Data> OpenData(const l0::Plan& plan, const l0::ControlUnit& unit,
                              const RunOptions& options) {
  std::set<l0::SamplerId> used;
  for (l0::SequenceId id : l0::PushedSequences(unit)) {
    for (const l0::Command& command : plan.sequences[id].commands) {
      if (command.kind == l0::CommandKind::kLoad) used.insert(command.sampler);
    }
  }
  Data data;
  absl::StatusOr<std::unique_ptr<FileReader>> reader = FileReader::Create(options.reader);
  if (!reader.ok()) return reader.status();
  data.reader = *std::move(reader);
  data.batches.resize(plan.samplers.size());
  std::map<std::tuple<uint32_t, int64_t, std::string>, const SplitData*> read;
  for (l0::SamplerId id : used) {
    const l0::Sampler& sampler = plan.samplers[id];
    const l0::DataSource& source = plan.sources[sampler.source];
    const SplitData* split = nullptr;
    if (options.synthetic) {
      // Without a stated size, so many that batches differ and none is short.
      const int64_t samples = sampler.samples > 0
                                  ? sampler.samples
                                  : sampler.batch * std::max<int64_t>(1, 4096 / sampler.batch);
      data.splits.push_back(std::make_unique<SplitData>(
          SyntheticSplit(AsStored(sampler, source), sampler.split, RowsFor(sampler, samples))));
      split = data.splits.back().get();
    } else {
      const SplitData*& known = read[{sampler.source, sampler.window, sampler.split}];
      if (known == nullptr) {
        auto folder = options.data.find(source.name);
        absl::StatusOr<SplitData> loaded = ReadSplit(
            AsStored(sampler, source), folder == options.data.end() ? source.path : folder->second,
            sampler.split, {data.reader.get(), options.resident_bytes});
        if (!loaded.ok()) return loaded.status();
        data.splits.push_back(std::make_unique<SplitData>(*std::move(loaded)));
        known = data.splits.back().get();
      }
      split = known;
    }
    const std::string title = Message("data '", source.name, "', split '", sampler.split, "'");
    const int64_t found = SamplesOf(sampler, split->samples);
    if (sampler.samples > 0 && found != sampler.samples) {
      return absl::InvalidArgumentError(
          Message(title, " has ", found, " samples; the plan is made for ", sampler.samples));
    }
    if (found < (sampler.drop_last ? sampler.batch : 1)) {
      return absl::InvalidArgumentError(Message(title, " has ", found, " samples, fewer than ",
                                                sampler.drop_last ? "one batch of " : "",
                                                sampler.drop_last ? sampler.batch : 1));
    }
    data.batches[id] = std::make_unique<Batches>(sampler, source, *split);
  }
  return data;
}

std::string HashWeights(const l0::Plan& plan, const Memory& memory) {
  Sha256 sha;
  for (l0::BufferId id : plan.parameters) {
    sha.Add({memory.Address(id), static_cast<size_t>(plan.buffers[id].size)});
  }
  return sha.Finish();
}

bool FiguresFinite(const std::vector<Value>& figures) {
  return std::all_of(figures.begin(), figures.end(),
                     [](const Value& figure) { return std::isfinite(figure.value); });
}

template <class T>
bool AllFinite(const std::byte* bytes, int64_t size) {
  for (int64_t at = 0; at + static_cast<int64_t>(sizeof(T)) <= size; at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes + at, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

bool WeightsFinite(const l0::Plan& plan, const Memory& memory) {
  for (l0::BufferId id : plan.parameters) {
    const l0::Buffer& buffer = plan.buffers[id];
    const bool finite =
        buffer.dtype == tensor::DType::kF32   ? AllFinite<float>(memory.Address(id), buffer.size)
        : buffer.dtype == tensor::DType::kF64 ? AllFinite<double>(memory.Address(id), buffer.size)
                                              : true;
    if (!finite) return false;
  }
  return true;
}

absl::StatusOr<RunResult> RunUnit(const l0::Plan& plan, const l0::ControlUnit& unit, bool training,
                                  const KernelTable& kernels, const RunOptions& options,
                                  EventSink& sink) {
  // What can be refused cheaply comes first.
  std::string resumed;
  if (!options.checkpoint.empty()) {
    absl::StatusOr<std::string> found = FindCheckpoint(options.checkpoint);
    const bool nothing_yet = training && options.or_from_start && absl::IsNotFound(found.status());
    if (!found.ok() && !nothing_yet) return found.status();
    if (found.ok()) resumed = *std::move(found);
  }
  std::optional<FolderLock> lock;
  std::optional<CheckpointWriter> writer;
  if (training && !options.output.empty()) {
    absl::StatusOr<FolderLock> taken = FolderLock::Take(options.output);
    if (!taken.ok()) return taken.status();
    lock.emplace(*std::move(taken));
    absl::StatusOr<CheckpointWriter> opened =
        CheckpointWriter::Open(options.output, options.keep_checkpoints, resumed);
    if (!opened.ok()) return opened.status();
    writer = *std::move(opened);
  }
  absl::StatusOr<Data> data = OpenData(plan, unit, options);
  if (!data.ok()) return data.status();
  absl::StatusOr<Memory> memory = Memory::Allocate(plan);
  if (!memory.ok()) return memory.status();

  std::string digest = options.plan_digest;
  if (digest.empty() && training && (writer || !resumed.empty())) digest = PlanDigest(plan);
  RunInit(plan, *memory);
  Metrics metrics(plan);
  Engine::Regions regions;
  if (!resumed.empty() && training) {
    absl::StatusOr<RunState> state = ReadCheckpoint(resumed, plan, digest, *memory);
    if (!state.ok()) return state.status();
    regions = std::move(state->regions);
    metrics.Restore(std::move(state->splits));
  } else if (!resumed.empty()) {
    if (absl::Status s = ReadWeights(resumed, plan, *memory); !s.ok()) return s;
  }
  const int64_t samples_before = metrics.split(kTrainSplit).samples;

  RunResult result;
  const auto save = [&](const Engine::Regions& now) -> absl::Status {
    if (!writer) return absl::OkStatus();
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<std::string> written =
        writer->Write(plan, *memory, {digest, now, metrics.splits()});
    if (!written.ok()) return written.status();
    result.checkpoint = *written;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    sink.OnCheckpoint({*written, metrics.split(kTrainSplit).steps, spent.count()});
    return absl::OkStatus();
  };

  WorkerTeam team(options.threads > 0 ? options.threads : CpuSet::Usable().count());
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Make({plan, unit, *memory, kernels, team, data->batches, metrics, sink,
                    stop_requested, save, options.timeline},
                   regions);
  if (!engine.ok()) return engine.status();
  const absl::Status status = (*engine)->Run();
  stop_requested.store(0);
  result.interrupted = (*engine)->stopped();
  if (!status.ok()) return status;

  const Metrics::Split& train = metrics.split(kTrainSplit);
  result.metrics = metrics.Figures();
  result.steps = train.steps;
  result.samples = train.samples;
  result.seconds = (*engine)->seconds();
  result.train_seconds = std::max(0.0, result.seconds - (*engine)->other_seconds());
  const int64_t rows =
      training ? train.samples - samples_before : metrics.split(kTestSplit).samples;
  const double over = training ? result.train_seconds : result.seconds;
  result.samples_per_second = over > 0 ? static_cast<double>(rows) / over : 0;
  result.streams = (*engine)->Use();
  result.weights_sha256 = HashWeights(plan, *memory);
  result.finite = FiguresFinite(result.metrics) && WeightsFinite(plan, *memory);
  return result;
}

}  // namespace

absl::StatusOr<RunResult> Train(const l0::Plan& plan, const KernelTable& kernels,
                                const RunOptions& options, EventSink& sink) {
  if (plan.control.empty()) {
    return absl::FailedPreconditionError("the plan has no control unit to run");
  }
  return RunUnit(plan, plan.control[0], /*training=*/true, kernels, options, sink);
}

absl::StatusOr<RunResult> Evaluate(const l0::Plan& plan, const KernelTable& kernels,
                                   const RunOptions& options, EventSink& sink) {
  for (const l0::ControlUnit& unit : plan.control) {
    if (unit.name != "evaluate") continue;
    return RunUnit(plan, unit, /*training=*/false, kernels, options, sink);
  }
  return absl::FailedPreconditionError("the plan has no control unit 'evaluate'");
}

void RequestStop() { stop_requested.store(1, std::memory_order_relaxed); }

}  // namespace l3c::runtime
