#include "runtime/engine.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/message.h"
#include "runtime/short_slices.h"

namespace l3c::runtime {
namespace {

using l0::CommandKind;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Progress is told ten times a second, rates are taken over about one.
constexpr double kTellEvery = 0.1;
constexpr double kRateOver = 1.0;

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Make(Parts parts, const Regions& regions) {
  std::unique_ptr<Engine> engine(new Engine(std::move(parts)));
  if (absl::Status s = engine->Bind(regions); !s.ok()) return s;
  return engine;
}

absl::Status Engine::Bind(const Regions& regions) {
  const l0::Plan& plan = p_.plan;
  streams_.resize(plan.streams.size());
  absl::StatusOr<RegionMemory> memory = RegionMemory::Make(p_.unit, regions, p_.signals);
  if (!memory.ok()) return memory.status();
  regions_.emplace(*std::move(memory));
  for (const l0::Region& region : p_.unit.regions) {
    region_stream_.push_back(0);
    for (size_t s = 0; s < plan.streams.size(); ++s) {
      if (plan.streams[s].name == region.stream) region_stream_.back() = static_cast<uint32_t>(s);
    }
    StreamState& stream = streams_[region_stream_.back()];
    if (region.access == l0::RegionAccess::kQueue) {
      stream.queue = std::make_unique<DescriptorQueue>(region.size);
    } else if (region.access == l0::RegionAccess::kCompletion) {
      stream.completions = std::make_unique<DescriptorQueue>(region.size);
    }
  }
  for (const l0::Token& token : plan.tokens) {
    tokens_.push_back(std::make_unique<Semaphore>(token.initial));
  }
  for (const l0::Sequence& sequence : plan.sequences) {
    StreamState& stream = streams_[sequence.stream];
    std::vector<BoundLaunch>& bound = launches_.emplace_back(sequence.commands.size());
    bool other = false;
    for (size_t c = 0; c < sequence.commands.size(); ++c) {
      const l0::Command& command = sequence.commands[c];
      other = other || (command.kind == CommandKind::kReport && command.split != kTrainSplit) ||
              command.kind == CommandKind::kCheckpoint;
      if (command.kind == CommandKind::kLoad && p_.batches[command.sampler] != nullptr) {
        stream.batches.try_emplace(command.sampler, *p_.batches[command.sampler]);
      }
      if (command.kind != CommandKind::kLaunch) continue;
      const l0::Kernel& kernel = plan.kernels[command.kernel];
      bound[c].function = p_.kernels.Find(command.kernel);
      if (bound[c].function == nullptr) {
        return absl::FailedPreconditionError(
            Message("there is no code for kernel '", kernel.name, "'"));
      }
      for (l0::BufferId id : command.args) bound[c].params.push_back(p_.memory.Address(id));
      bound[c].params.push_back(p_.kernels.Context(command.kernel));
      bound[c].blocks = l0::NumBlocks(kernel);
    }
    other_sequence_.push_back(other);
  }
  return absl::OkStatus();
}

absl::Status Engine::Run() {
  begin_ = Clock::now();
  if (p_.timeline != nullptr) p_.timeline->Begin(streams_.size(), begin_);
  std::vector<std::thread> threads;
  try {
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].queue == nullptr) continue;
      threads.emplace_back([this, s] { RunStream(static_cast<l0::StreamId>(s)); });
    }
  } catch (const std::system_error& error) {
    Fail(absl::ResourceExhaustedError(Message("cannot start a stream's thread: ", error.what())));
  }
  const auto unit = static_cast<size_t>(&p_.unit - p_.plan.control.data());
  const l0::ControlFn code = p_.kernels.FindControl(unit);
  const l0::ControlOutcome outcome = code != nullptr
                                         ? l0::RunControlCode(code, regions_->bytes(), *this)
                                         : l0::RunControl(p_.unit, regions_->bytes(), *this);
  stopped_ = outcome.stop_seen;
  if (outcome.end == l0::ControlEnd::kOutOfBounds || outcome.end == l0::ControlEnd::kIdle) {
    Fail(absl::InternalError(
        Message("control unit '", p_.unit.name, "', block '", p_.unit.blocks[outcome.block].name,
                outcome.end == l0::ControlEnd::kIdle ? "': no end in sight"
                                                     : "': an offset lies outside its region")));
  }
  for (StreamState& stream : streams_) {
    if (stream.queue != nullptr) stream.queue->Finish();
  }
  for (std::thread& thread : threads) thread.join();
  seconds_ = Seconds(Clock::now() - begin_);
  return failure_;
}

bool Engine::Push(l0::RegionId queue, int64_t descriptor) {
  return streams_[region_stream_[queue]].queue->Push(descriptor);
}

std::optional<int64_t> Engine::Pop(l0::RegionId queue) {
  return streams_[region_stream_[queue]].completions->Pop();
}

void Engine::Fail(absl::Status status) {
  {
    std::lock_guard lock(failing_);
    if (!failure_.ok()) return;
    failure_ = std::move(status);
  }
  for (StreamState& stream : streams_) {
    if (stream.queue != nullptr) stream.queue->Cancel();
    if (stream.completions != nullptr) stream.completions->Cancel();
  }
  for (auto& token : tokens_) token->Close();
}

void Engine::RunStream(l0::StreamId id) {
  StreamState& stream = streams_[id];
  if (p_.plan.streams[id].kind == l0::StreamKind::kLoader) UseShortSlices();
  while (const std::optional<int64_t> descriptor = stream.queue->Pop()) {
    const auto sequence =
        static_cast<l0::SequenceId>(*descriptor & ((int64_t{1} << l0::kSequenceBits) - 1));
    const int64_t argument = *descriptor >> l0::kSequenceBits;
    const Time begin = Clock::now();
    const double waited = stream.waiting;
    if (!RunSequence(id, sequence, argument, *descriptor)) return;
    const double spent = Seconds(Clock::now() - begin);
    stream.busy += spent - (stream.waiting - waited);
    if (other_sequence_[sequence]) stream.other += spent;
  }
}

bool Engine::RunSequence(l0::StreamId id, l0::SequenceId sequence, int64_t argument,
                         int64_t descriptor) {
  const std::vector<l0::Command>& commands = p_.plan.sequences[sequence].commands;
  for (size_t c = 0; c < commands.size(); ++c) {
    const BoundLaunch& launch = launches_[sequence][c];
    if (p_.timeline == nullptr) {
      if (!RunCommand(streams_[id], commands[c], launch, argument, descriptor)) return false;
      continue;
    }
    const Time begin = Clock::now();
    if (!RunCommand(streams_[id], commands[c], launch, argument, descriptor)) return false;
    p_.timeline->Add(id, begin, Clock::now(), sequence, c, argument);
  }
  return true;
}

bool Engine::RunCommand(StreamState& stream, const l0::Command& command, const BoundLaunch& launch,
                        int64_t argument, int64_t descriptor) {
  switch (command.kind) {
    case CommandKind::kLaunch:
      p_.team.Run(launch.function, launch.params.data(), launch.blocks);
      break;
    case CommandKind::kLoad:
      if (absl::Status s = RunLoad(stream, command, argument); !s.ok()) {
        Fail(std::move(s));
        return false;
      }
      break;
    case CommandKind::kCopy:
      std::memcpy(p_.memory.Address(command.args[1]), p_.memory.Address(command.args[0]),
                  static_cast<size_t>(p_.plan.buffers[command.args[0]].size));
      break;
    case CommandKind::kWait: {
      const Time begin = Clock::now();
      if (!tokens_[command.token]->Wait()) return false;
      stream.waiting += Seconds(Clock::now() - begin);
      break;
    }
    case CommandKind::kSignal:
      tokens_[command.token]->Signal();
      break;
    case CommandKind::kReport:
      RunReport(command, argument);
      break;
    case CommandKind::kPublish:
      RunPublish(command, argument);
      break;
    case CommandKind::kCheckpoint:
      if (absl::Status s = RunCheckpoint(); !s.ok()) {
        Fail(std::move(s));
        return false;
      }
      break;
    case CommandKind::kComplete:
      return stream.completions->Push(descriptor);
  }
  return true;
}

absl::Status Engine::RunLoad(StreamState& stream, const l0::Command& command, int64_t argument) {
  Batches& batches = stream.batches.at(command.sampler);
  const l0::Sampler& sampler = p_.plan.samplers[command.sampler];
  const l0::DataSource& source = p_.plan.sources[sampler.source];
  for (const auto& [name, buffer] : command.fields) {
    for (size_t f = 0; f < source.fields.size(); ++f) {
      if (source.fields[f].field != name) continue;
      absl::Status status = batches.Fill(argument, f, p_.memory.Address(buffer));
      if (!status.ok()) return status;
    }
  }
  for (l0::BufferId mask : command.mask) {
    batches.FillMask(argument, {reinterpret_cast<float*>(p_.memory.Address(mask)),
                                static_cast<size_t>(sampler.batch)});
  }
  std::lock_guard lock(events_);
  loaded_rows_[sampler.split][argument] = batches.Rows(argument);
  return absl::OkStatus();
}

void Engine::RunReport(const l0::Command& command, int64_t argument) {
  Report report;
  report.split = command.split;
  report.argument = argument;
  for (const auto& [name, buffer] : command.values) {
    float value;
    std::memcpy(&value, p_.memory.Address(buffer), sizeof value);
    report.values.push_back({name, value});
  }
  std::lock_guard lock(events_);
  int64_t rows = 0;
  // A plan by hand may report under other numbers than it loads: then those of the earliest batch.
  std::map<int64_t, int64_t>& loaded = loaded_rows_[command.split];
  auto batch = loaded.find(argument);
  if (batch == loaded.end()) batch = loaded.begin();
  if (batch != loaded.end()) {
    rows = batch->second;
    loaded.erase(batch);
  }
  p_.metrics.Add(report, rows);
  p_.sink.OnReport(report);
  const Time now = Clock::now();
  auto [pace, first] = pace_.try_emplace(command.split);
  if (first || pace->second.period_begin == Time()) {
    pace->second.period_begin = first ? begin_ : now;
    if (first && command.split != kTrainSplit) pace->second.period_begin = now;
    pace->second.mark = pace->second.period_begin;
    pace->second.mark_samples = pace->second.run_samples;
  }
  pace->second.run_samples += rows;
  TellProgress(command.split, now);
}

void Engine::TellProgress(const std::string& split, Time now) {
  Pace& pace = pace_[split];
  const double since_mark = Seconds(now - pace.mark);
  if (since_mark >= kRateOver || (pace.rate == 0 && since_mark > 0)) {
    pace.rate = static_cast<double>(pace.run_samples - pace.mark_samples) / since_mark;
    if (since_mark >= kRateOver) {
      pace.mark = now;
      pace.mark_samples = pace.run_samples;
    }
  }
  if (Seconds(now - pace.told) < kTellEvery) return;
  pace.told = now;
  const Metrics::Split& done = p_.metrics.split(split);
  p_.sink.OnProgress({split, done.steps, done.samples, Seconds(now - begin_), pace.rate});
}

void Engine::RunPublish(const l0::Command& command, int64_t argument) {
  std::lock_guard lock(events_);
  Period period = p_.metrics.Publish(command.split, argument);
  Pace& pace = pace_[command.split];
  const Time now = Clock::now();
  if (pace.period_begin != Time()) period.seconds = Seconds(now - pace.period_begin);
  pace.period_begin = Time();  // the next period begins with its first report
  p_.sink.OnPeriod(period);
}

absl::Status Engine::RunCheckpoint() {
  const Regions regions = regions_->Snapshot();
  std::lock_guard lock(events_);
  return p_.save(regions);
}

double Engine::other_seconds() const {
  double seconds = 0;
  for (const StreamState& stream : streams_) seconds = std::max(seconds, stream.other);
  return seconds;
}

std::vector<StreamUse> Engine::Use() const {
  std::vector<StreamUse> use;
  for (size_t s = 0; s < streams_.size(); ++s) {
    if (streams_[s].queue == nullptr) continue;
    use.push_back({p_.plan.streams[s].name, streams_[s].busy, streams_[s].waiting});
  }
  return use;
}

}  // namespace l3c::runtime
