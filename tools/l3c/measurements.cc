#include "tools/l3c/measurements.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "layers/l0/kernel_schedule.h"
#include "layers/l0/tile_product.h"

namespace l3c::tools {
namespace {

using Clock = std::chrono::steady_clock;
using cost::Measurement;

constexpr int kSamples = 12;
constexpr double kSampleSeconds = 1e-3;
constexpr int64_t kMemoryBytes = int64_t{256} << 20;  // that no cache holds
// Sums and factors in registers, more sums than a multiply-add's latency has places for.
constexpr int64_t kLength = 20000;
constexpr int kChains = 12;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of times: the faster, the nearer to what the machine can do.
Measurement Fast(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double fast = samples[n / 4];
  return {fast, (samples[n * 3 / 4] - fast) / fast, static_cast<int>(n)};
}

// Seconds of a call.
template <class Call>
Measurement Sampled(const Call& call) {
  call();  // code and data come into the caches
  auto start = Clock::now();
  call();
  const double once = std::max(Since(start), 1e-9);
  const auto calls = static_cast<int64_t>(std::clamp(kSampleSeconds / once, 1.0, 1e6));
  std::vector<double> samples;
  for (int s = 0; s < kSamples; ++s) {
    start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    samples.push_back(Since(start) / static_cast<double>(calls));
  }
  return Fast(std::move(samples));
}

// Arguments of a kernel, side by side at multiples of a cache line in pages as large as a plan's
// are (runtime/memory.cc); their values lie where every operation has an ordinary result.
class Arguments {
 public:
  explicit Arguments(const l0::Kernel& kernel) {
    constexpr size_t kLine = 64;
    std::vector<size_t> offsets;
    for (const l0::Param& param : kernel.params) {
      offsets.push_back(size_);
      const auto elements = static_cast<size_t>(tensor::NumElements(param.shape));
      size_ += (elements * sizeof(float) + kLine - 1) / kLine * kLine;
    }
    size_ += kLine;
    base_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    madvise(base_, size_, MADV_HUGEPAGE);
    auto* values = static_cast<float*>(base_);
    std::fill(values, values + size_ / sizeof(float), 0.25F);
    for (size_t offset : offsets) addresses_.push_back(values + offset / sizeof(float));
  }
  ~Arguments() { munmap(base_, size_); }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void* const* get() const { return addresses_.data(); }

 private:
  size_t size_ = 0;
  void* base_ = nullptr;
  std::vector<void*> addresses_;
};

// Every block takes as long.
constexpr double kBlockSeconds = 10e-6;
void Blocks(void* const*, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const auto start = Clock::now();
    while (Since(start) < kBlockSeconds) {
    }
  }
}

// A value over a time, with the time's spread.
Measurement Over(double value, const Measurement& time) {
  return {value / time.value, time.spread, time.samples};
}

}  // namespace

Measurements::Measurements(const cost::CpuMachine& machine, std::unique_ptr<llvm_backend::Jit> jit)
    : machine_(machine),
      model_(machine),
      jit_(std::move(jit)),
      team_(static_cast<int>(machine.cores)) {}

absl::StatusOr<std::unique_ptr<Measurements>> Measurements::Create(
    const cost::CpuMachine& machine) {
  auto jit = llvm_backend::Jit::Create({.threads = static_cast<int>(machine.cores)});
  if (!jit.ok()) return jit.status();
  return std::unique_ptr<Measurements>(new Measurements(machine, *std::move(jit)));
}

absl::StatusOr<l0::Kernel> Measurements::Compile(l0::Kernel kernel, bool schedule) {
  if (schedule) {
    const std::vector<l0::Schedule> schedules = l0::CandidateSchedules(kernel, model_.target());
    const auto best = std::min_element(
        schedules.begin(), schedules.end(), [&](const l0::Schedule& a, const l0::Schedule& b) {
          return model_.KernelSeconds(kernel, a) < model_.KernelSeconds(kernel, b);
        });
    kernel = l0::ApplySchedule(kernel, *best);
  }
  kernel.name = "probe_" + std::to_string(compiled_++);
  if (absl::Status status = jit_->Compile({&kernel, 1}); !status.ok()) return status;
  return kernel;
}

Measurement Measurements::Time(const l0::Kernel& kernel, bool all_cores) {
  const llvm_backend::KernelFn function = jit_->Find(kernel.name);
  const Arguments arguments(kernel);
  const int64_t blocks = l0::NumBlocks(kernel);
  return Sampled([&] {
    if (all_cores) {
      team_.Run(function, arguments.get(), blocks);
    } else {
      function(arguments.get(), 0, blocks);
    }
  });
}

absl::StatusOr<Measurement> Measurements::OperationSeconds(std::string_view op, int few, int many) {
  constexpr int64_t kElements = 2048;  // both buffers stay in the first cache level
  Measurement times[2];
  for (int i = 0; i < 2; ++i) {
    const auto kernel = Compile(cost::ChainKernel(op, i == 0 ? few : many, kElements), true);
    if (!kernel.ok()) return kernel.status();
    times[i] = Time(*kernel, false);
  }
  const double vectors = static_cast<double>(kElements) / machine_.lanes * (many - few);
  const double difference = times[1].value - times[0].value;
  if (difference <= 0) {
    return absl::UnavailableError("the machine is too busy to tell what '" + std::string(op) +
                                  "' costs");
  }
  return Measurement{
      difference / vectors,
      (times[0].spread * times[0].value + times[1].spread * times[1].value) / difference,
      times[1].samples};
}

absl::StatusOr<Measurement> Measurements::ReadBandwidth(int64_t bytes, bool all_cores) {
  constexpr int64_t kColumns = 4096;
  const int64_t rows = std::max<int64_t>(1, bytes / (kColumns * 4));
  const auto kernel = Compile(cost::ProbeKernel(cost::Probe::kRows, {rows, kColumns, 1}), true);
  if (!kernel.ok()) return kernel.status();
  return Over(static_cast<double>(rows * kColumns * 4), Time(*kernel, all_cores));
}

// Of sums over rows, or of a map, which reads two bytes for each that it writes: whichever draws
// more.
absl::StatusOr<Measurement> Measurements::MemoryBandwidth() {
  auto read = ReadBandwidth(kMemoryBytes, true);
  if (!read.ok()) return read;
  constexpr int64_t kElements = kMemoryBytes / 8;
  const auto map = Compile(cost::ProbeKernel(cost::Probe::kMap, {kElements, 1, 1}), true);
  if (!map.ok()) return map.status();
  const Measurement moved = Over(static_cast<double>(kElements) * 12, Time(*map, true));
  return read->value > moved.value ? *read : moved;
}

// What blocks of a known time take longer than they should.
Measurement Measurements::LaunchSeconds() {
  constexpr int64_t kEach = 2;
  const Measurement all = Sampled([&] { team_.Run(&Blocks, nullptr, kEach * machine_.cores); });
  const double launch = std::max(all.value - static_cast<double>(kEach) * kBlockSeconds, 1e-8);
  return {launch, all.spread * all.value / launch, all.samples};
}

absl::Status Measurements::PairFigures(cost::Evidence& evidence) {
  const std::string features = " " + evidence.target.features + " ";
  if (features.find(" avx512bf16 ") != std::string::npos) {
    const auto peak =
        Compile(cost::MultiplyAddKernel(machine_.lanes, kChains, kLength, true), false);
    if (!peak.ok()) return peak.status();
    evidence.figures["bf16_dot_seconds"] =
        Over(1, Over(kChains * static_cast<double>(kLength), Time(*peak, false)));
  }
  if (machine_.tile_product == 0) return absl::OkStatus();
  // Two sums of a body of 2×2 tiles whose factors stay in the first cache level: the difference is
  // without what a body costs besides.
  constexpr int64_t kShort = 64;
  constexpr int64_t kLong = 160;
  Measurement times[2];
  for (int i = 0; i < 2; ++i) {
    const auto kernel =
        Compile(cost::ProbeKernel(cost::Probe::kTiles, {32, 32, i == 0 ? kShort : kLong}), true);
    if (!kernel.ok()) return kernel.status();
    times[i] = Time(*kernel, false);
  }
  const double difference = times[1].value - times[0].value;
  if (difference <= 0) {
    return absl::UnavailableError("the machine is too busy to tell what products in tiles cost");
  }
  constexpr double kProducts = 4.0 * (kLong - kShort) / l0::kTileEdge;
  evidence.figures["tile_product_seconds"] = {
      difference / kProducts,
      (times[0].spread * times[0].value + times[1].spread * times[1].value) / difference,
      times[1].samples};
  return absl::OkStatus();
}

absl::Status Measurements::Figures(const Progress& progress, cost::Evidence& evidence) {
  progress("arithmetic", 0);
  const auto peak = Compile(cost::MultiplyAddKernel(machine_.lanes, kChains, kLength), false);
  if (!peak.ok()) return peak.status();
  evidence.figures["fma_flops"] =
      Over(2.0 * machine_.lanes * kChains * static_cast<double>(kLength), Time(*peak, false));
  if (absl::Status status = PairFigures(evidence); !status.ok()) return status;
  const struct {
    const char* figure;
    const char* op;
    int few, many;
  } operations[] = {{"simple_seconds", "add", 8, 24},      {"divide_seconds", "recip", 1, 3},
                    {"square_root_seconds", "sqrt", 1, 3}, {"exp2_seconds", "exp2", 1, 3},
                    {"log2_seconds", "log2", 1, 3},        {"sine_seconds", "sin", 1, 3}};
  for (const auto& operation : operations) {
    const auto seconds = OperationSeconds(operation.op, operation.few, operation.many);
    if (!seconds.ok()) return seconds.status();
    evidence.figures[operation.figure] = *seconds;
  }
  // Each logarithm came with an exponential.
  cost::Measurement& logarithm = evidence.figures["log2_seconds"];
  logarithm.value = std::max(logarithm.value - evidence.figures["exp2_seconds"].value, 1e-11);
  progress("caches and memory", 0.05);
  const int64_t l2 = evidence.target.l2_bytes > 0 ? evidence.target.l2_bytes : 1 << 20;
  const auto from_l2 = ReadBandwidth(l2 / 2, false);
  const auto from_l3 = ReadBandwidth(4 * l2, false);
  const auto from_memory = MemoryBandwidth();
  for (const auto* bandwidth : {&from_l2, &from_l3, &from_memory}) {
    if (!bandwidth->ok()) return bandwidth->status();
  }
  evidence.figures["l2_bandwidth"] = *from_l2;
  evidence.figures["l3_bandwidth"] = *from_l3;
  evidence.figures["memory_bandwidth"] = *from_memory;
  // Nearer to the third level's than to memory's, as factors go.
  const double border =
      std::sqrt(from_l3->value * static_cast<double>(machine_.cores) * from_memory->value);
  Measurement reach{static_cast<double>(4 * l2), 0, 1};
  for (int64_t bytes = 8 * l2; bytes < kMemoryBytes; bytes *= 2) {
    const auto bandwidth = ReadBandwidth(bytes, true);
    if (!bandwidth.ok()) return bandwidth.status();
    if (bandwidth->value < border) break;
    reach = {static_cast<double>(bytes), bandwidth->spread, bandwidth->samples};
  }
  evidence.figures["l3_reach_bytes"] = reach;
  progress("launches", 0.15);
  evidence.figures["launch_seconds"] = LaunchSeconds();
  return absl::OkStatus();
}

absl::Status Measurements::Run(double seconds, const Progress& progress, cost::Evidence& evidence) {
  if (absl::Status status = Figures(progress, evidence); !status.ok()) return status;
  std::vector<std::pair<cost::Probe, cost::Extents>> shapes;
  size_t longest = 0;
  std::vector<cost::Probe> probes;
  for (cost::Probe probe : cost::kProbes) {
    if (probe == cost::Probe::kTiles && machine_.tile_product == 0) continue;
    probes.push_back(probe);
    longest = std::max(longest, cost::ProbeShapes(probe).size());
  }
  for (size_t i = 0; i < longest; ++i) {
    for (cost::Probe probe : probes) {
      const std::vector<cost::Extents> own = cost::ProbeShapes(probe);
      if (i < own.size()) shapes.emplace_back(probe, own[i]);
    }
  }
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < shapes.size() && Since(start) < seconds; ++i) {
    const auto& [probe, extents] = shapes[i];
    progress(std::string(cost::ProbeName(probe)),
             0.2 + 0.8 * static_cast<double>(i) / static_cast<double>(shapes.size()));
    const auto kernel = Compile(cost::ProbeKernel(probe, extents), true);
    if (!kernel.ok()) return kernel.status();
    evidence.points.push_back(
        {std::string(cost::ProbeName(probe)), extents, Time(*kernel, /*all_cores=*/true)});
  }
  // What others draw from the memory meanwhile changes by the second.
  const auto again = MemoryBandwidth();
  if (!again.ok()) return again.status();
  Measurement& memory = evidence.figures["memory_bandwidth"];
  if (again->value > memory.value) memory = *again;
  return absl::OkStatus();
}

std::optional<Measurement> StorageBandwidth(const std::string& folder, int64_t bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::string path = folder + "/storage-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return std::nullopt;
  unlink(path.c_str());  // gone with the last descriptor, whatever happens
  constexpr size_t kPiece = size_t{4} << 20;
  std::vector<char> piece(kPiece);
  // No file system can keep it shorter than it is.
  for (size_t i = 0; i < kPiece; ++i) piece[i] = static_cast<char>((i * 2654435761U) >> 13);
  bool good = true;
  for (int64_t at = 0; good && at < bytes; at += static_cast<int64_t>(kPiece)) {
    good = write(file, piece.data(), kPiece) == static_cast<ssize_t>(kPiece);
  }
  good = good && fdatasync(file) == 0;
  std::vector<double> samples;
  for (int s = 0; good && s < 3; ++s) {
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const Clock::time_point start = Clock::now();
    for (int64_t at = 0; good && at < bytes; at += static_cast<int64_t>(kPiece)) {
      good = pread(file, piece.data(), kPiece, at) == static_cast<ssize_t>(kPiece);
    }
    samples.push_back(Since(start));
  }
  close(file);
  if (!good) return std::nullopt;
  return Over(static_cast<double>(bytes), Fast(std::move(samples)));
}

}  // namespace l3c::tools
