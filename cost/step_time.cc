#include "cost/step_time.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "layers/l0/kernel_axes.h"
#include "layers/l0/kernel_schedule.h"
#include "layers/l0/kernel_text.h"

namespace l3c::cost {
namespace {

using l0::BufferId;
using l0::Command;
using l0::CommandKind;

// Fine beside the second cache; and coarser for plans that touch more pages than these in a step.
constexpr double kLeastPage = 32768;
constexpr double kMostPages = 1 << 19;

// How many different pages were touched since a page was touched last: what a cache that drops the
// least recently used one must hold to have it still.
class ReuseDistance {
 public:
  explicit ReuseDistance(size_t touches) : sums_(touches + 1, 0) {}

  // Pages; negative where it was never touched.
  int64_t Touch(uint64_t page) {
    int64_t distance = -1;
    const auto [at, first] = last_.try_emplace(page, 0);
    if (!first) {
      distance = Sum(now_) - Sum(at->second + 1);
      Add(at->second, -1);
    }
    at->second = now_;
    Add(now_, 1);
    ++now_;
    return distance;
  }

 private:
  // A Fenwick tree over the touches that are some page's last.
  void Add(size_t at, int32_t value) {
    for (++at; at < sums_.size(); at += at & (~at + 1)) sums_[at] += value;
  }
  int64_t Sum(size_t end) const {
    int64_t sum = 0;
    for (; end > 0; end -= end & (~end + 1)) sum += sums_[end];
    return sum;
  }

  std::vector<int32_t> sums_;
  std::unordered_map<uint64_t, size_t> last_;
  size_t now_ = 0;
};

// The bytes of a parameter that a launch touches.
struct Touched {
  double first = 0;      // where they begin, among all pools
  double extent = 0;     // from there
  double bytes = 0;      // read and written
  double allocated = 0;  // of these, written without having been read
};

Touched TouchedBy(const l0::Plan& plan, BufferId id, const l0::ParamBytes& bytes) {
  const l0::Buffer& buffer = plan.buffers[id];
  double first = static_cast<double>(buffer.offset);
  for (l0::PoolId pool = 0; pool < buffer.pool; ++pool) {
    first += static_cast<double>(plan.pools[pool].size);
  }
  const double most = std::max(bytes.read, bytes.written);
  return {first, std::min(most, static_cast<double>(buffer.size)), bytes.read + bytes.written,
          bytes.read > 0 ? 0 : bytes.written};
}

int64_t PagesOf(const Touched& touched, double page) {
  return static_cast<int64_t>(touched.extent / page) + 1;
}

// The schedule that a kernel of a plan was made by: the candidate that leaves it as it is.
l0::Schedule ScheduleOf(const l0::Kernel& kernel, const CpuCostModel& model) {
  const std::string text = l0::PrintKernel(kernel);
  std::vector<l0::Schedule> candidates = l0::CandidateSchedules(kernel, model.target());
  for (l0::Schedule& schedule : candidates) {
    if (l0::PrintKernel(l0::ApplySchedule(kernel, schedule)) == text) return std::move(schedule);
  }
  // Written by hand, or for another target: its own figures, and the first one's for the rest.
  l0::Schedule& schedule = candidates.front();
  schedule.blocks = l0::NumBlocks(kernel);
  return std::move(schedule);
}

// What a kernel costs wherever its bytes are.
struct KernelFacts {
  l0::Schedule schedule;
  double launch = 0;
  std::vector<l0::ParamBytes> bytes;
  std::string_view evidence;
};

KernelFacts FactsOf(const l0::Kernel& kernel, const CpuCostModel& model) {
  KernelFacts facts;
  facts.schedule = ScheduleOf(kernel, model);
  facts.launch = model.LaunchSeconds(static_cast<double>(facts.schedule.blocks));
  facts.bytes = l0::CountBytes(kernel);
  facts.evidence = model.KernelEvidence(kernel);
  return facts;
}

int Rank(std::string_view evidence) {
  for (int rank = 0; const std::string_view known : {"measured", "interpolated", "extrapolated"}) {
    if (evidence == known) return rank;
    ++rank;
  }
  return 3;
}

// Bytes that the loader copies while a step of `sequence` computes: of the load commands whose
// batch it reads, of which slots take turns.
double LoadedBytes(const l0::Plan& plan, const l0::Sequence& sequence) {
  std::vector<bool> read(plan.buffers.size(), false);
  for (const Command& command : sequence.commands) {
    if (command.kind != CommandKind::kLaunch) continue;
    for (BufferId id : command.args) read[id] = true;
  }
  double bytes = 0;
  for (const l0::Sequence& other : plan.sequences) {
    for (const Command& command : other.commands) {
      if (command.kind != CommandKind::kLoad) continue;
      for (const auto& [field, id] : command.fields) {
        if (read[id]) bytes += static_cast<double>(plan.buffers[id].size);
      }
    }
    if (bytes > 0) break;
  }
  return bytes;
}

}  // namespace

StepTime PredictStep(const l0::Plan& plan, const l0::Sequence& sequence,
                     const CpuCostModel& model) {
  std::map<l0::KernelId, KernelFacts> facts;
  std::vector<std::vector<Touched>> touched(sequence.commands.size());
  double extents = 0;
  for (size_t c = 0; c < sequence.commands.size(); ++c) {
    const Command& command = sequence.commands[c];
    if (command.kind != CommandKind::kLaunch) continue;
    const auto [known, added] = facts.try_emplace(command.kernel);
    if (added) known->second = FactsOf(plan.kernels[command.kernel], model);
    for (size_t p = 0; p < command.args.size(); ++p) {
      touched[c].push_back(TouchedBy(plan, command.args[p], known->second.bytes[p]));
      extents += touched[c].back().extent;
    }
  }
  double page_size = kLeastPage;
  while (extents / page_size > kMostPages) page_size *= 2;
  size_t touches = 0;
  for (const std::vector<Touched>& of_launch : touched) {
    for (const Touched& t : of_launch) touches += static_cast<size_t>(PagesOf(t, page_size));
  }
  ReuseDistance reuse(2 * touches);
  StepTime step;
  step.evidence = "measured";
  double from_memory = 0;
  // What the first round finds is what the second left: only that one counts.
  for (const bool counts : {false, true}) {
    for (size_t c = 0; c < sequence.commands.size(); ++c) {
      const Command& command = sequence.commands[c];
      if (command.kind != CommandKind::kLaunch) continue;
      const KernelFacts& kernel = facts.at(command.kernel);
      Traffic traffic;
      for (const Touched& t : touched[c]) {
        const int64_t pages = PagesOf(t, page_size);
        const double page_bytes = t.bytes / static_cast<double>(pages);
        const double page_allocated = t.allocated / static_cast<double>(pages);
        const auto first_page = static_cast<uint64_t>(t.first / page_size);
        for (int64_t page = 0; page < pages; ++page) {
          const int64_t distance = reuse.Touch(first_page + static_cast<uint64_t>(page));
          model.AddTraffic(distance < 0 ? -1 : static_cast<double>(distance + 1) * page_size,
                           page_bytes, page_allocated, traffic);
        }
      }
      if (!counts) continue;
      from_memory += traffic.memory;
      const double seconds =
          model.KernelSeconds(plan.kernels[command.kernel], kernel.schedule, traffic) +
          kernel.launch;
      step.launches.push_back({static_cast<uint32_t>(c), seconds, kernel.evidence});
      step.seconds += seconds;
      if (Rank(kernel.evidence) > Rank(step.evidence)) step.evidence = kernel.evidence;
    }
  }
  // Read, written, and the line that is written read before; by one core, with its part of the
  // memory's bandwidth, in time that all cores then lack.
  const double loaded = 3 * LoadedBytes(plan, sequence);
  step.loads = loaded / model.machine().memory_bandwidth;
  step.seconds += step.loads;
  // All of it comes through one bus.
  step.seconds = std::max(step.seconds, (from_memory + loaded) / model.machine().memory_bandwidth);
  return step;
}

std::optional<StepTime> PredictTrainingStep(const l0::Plan& plan, const CpuCostModel& model) {
  const auto trains = [](const l0::Sequence& sequence) {
    bool launches = false;
    bool reports = false;
    for (const Command& command : sequence.commands) {
      launches |= command.kind == CommandKind::kLaunch;
      reports |= command.kind == CommandKind::kReport && command.split == "train";
    }
    return launches && reports;
  };
  const auto sequence = std::find_if(plan.sequences.begin(), plan.sequences.end(), trains);
  const auto computing = std::count_if(
      plan.streams.begin(), plan.streams.end(),
      [](const l0::Stream& stream) { return stream.kind == l0::StreamKind::kCompute; });
  if (sequence == plan.sequences.end() || computing != 1) return std::nullopt;
  return PredictStep(plan, *sequence, model);
}

}  // namespace l3c::cost
