#include "tools/l3c/sweep/sweep.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "tools/l3c/sweep/bounded_process.h"

namespace l3c::tools::sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int) { interrupted = 1; }

struct Job {
  const Point* point = nullptr;
  int64_t repeat = 1;
};

// One measurement under way: its child processes one after the other.
class Measurement {
 public:
  Measurement(const Grid& grid, const MeasureOptions& options, Job job, size_t worker)
      : job_(job),
        program_(options.program),
        limits_{grid.seconds_limit, grid.memory_limit},
        scratch_((fs::path(options.folder) / ("scratch-" + std::to_string(worker))).string()),
        steps_(StepsOf(grid, *job.point, job.repeat, scratch_)) {
    sample_.point = job.point->key;
    sample_.repeat = job.repeat;
    Begin();
  }

  // The sample when it is there.
  std::optional<Sample> Poll() {
    std::optional<ProcessResult> result;
    if (process_.running()) {
      result = process_.Poll();
      if (!result) return std::nullopt;
    } else {
      sample_.failed = "no process could be started";
    }
    if (result && sample_.failed.empty()) Take(*result);
    if (sample_.failed.empty() && ++at_ < steps_.size()) {
      Begin();
      return std::nullopt;
    }
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
    sample_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    return sample_;
  }

  const Job& job() const { return job_; }

 private:
  void Begin() {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
    std::vector<std::string> command = {program_};
    command.insert(command.end(), steps_[at_].arguments.begin(), steps_[at_].arguments.end());
    process_.Start(command, {}, limits_);
  }

  void Take(const ProcessResult& result) {
    if (!result.failure.empty()) {
      sample_.failed = result.failure;
      return;
    }
    const absl::Status read = ReadFigures(steps_[at_].kind, result.output, result.cpu_seconds,
                                          result.peak_rss_bytes, sample_.figures);
    if (!read.ok()) sample_.failed = std::string(read.message());
  }

  const Job job_;
  const std::string program_;
  const ProcessLimits limits_;
  const std::string scratch_;
  const std::vector<Step> steps_;
  const Clock::time_point begun_ = Clock::now();
  size_t at_ = 0;
  BoundedProcess process_;
  Sample sample_;
};

// What is left takes as long as its points took before, or as the points did on average.
class Forecast {
 public:
  void Add(const std::string& point, double seconds) {
    Taken& taken = points_[point];
    taken.seconds += seconds;
    ++taken.count;
    all_.seconds += seconds;
    ++all_.count;
  }
  double Left(const std::deque<Job>& jobs, size_t workers) const {
    if (all_.count == 0) return 0;
    double left = 0;
    for (const Job& job : jobs) {
      const auto found = points_.find(job.point->key);
      const Taken& taken = found == points_.end() ? all_ : found->second;
      left += taken.seconds / static_cast<double>(taken.count);
    }
    return left / static_cast<double>(workers);
  }

 private:
  struct Taken {
    double seconds = 0;
    size_t count = 0;
  };
  std::map<std::string, Taken> points_;
  Taken all_;
};

bool WriteTexts(const std::vector<Point>& points) {
  for (const Point& point : points) {
    if (!point.text) continue;
    std::error_code error;
    fs::create_directories(fs::path(point.file).parent_path(), error);
    std::ofstream file(point.file, std::ios::binary | std::ios::trunc);
    file << *point.text << std::flush;
    if (!file) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> MeasureAll(
    const Grid& grid, const std::vector<Point>& points, const MeasureOptions& options,
    SampleLog& log, const std::function<void(const Sample&, const SweepProgress&)>& on_sample) {
  if (!WriteTexts(points)) {
    return absl::UnavailableError(options.folder +
                                  ": the programs of other shapes cannot be "
                                  "written there");
  }
  interrupted = 0;
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, OnInterrupt);
  std::set<std::pair<std::string, int64_t>> measured;
  std::set<std::string> failed;
  Forecast forecast;
  for (const Sample& sample : log.samples()) {
    if (!sample.failed.empty()) {
      failed.insert(sample.point);
      continue;
    }
    measured.emplace(sample.point, sample.repeat);
    forecast.Add(sample.point, sample.seconds);
  }
  if (options.retry) failed.clear();
  std::deque<Job> jobs;
  for (int64_t repeat = 1; repeat <= grid.repeats; ++repeat) {
    for (const Point& point : points) {
      if (failed.contains(point.key) || measured.contains({point.key, repeat})) continue;
      jobs.push_back({&point, repeat});
    }
  }
  SweepProgress progress;
  progress.of = points.size() * static_cast<size_t>(grid.repeats);
  progress.done = progress.of - jobs.size();

  std::vector<std::unique_ptr<Measurement>> workers(std::max<size_t>(1, options.workers));
  const timespec moment = {0, 3'000'000};
  while (!interrupted) {
    bool busy = false;
    for (size_t w = 0; w < workers.size(); ++w) {
      if (workers[w] == nullptr && !jobs.empty()) {
        workers[w] = std::make_unique<Measurement>(grid, options, jobs.front(), w);
        jobs.pop_front();
      }
      if (workers[w] == nullptr) continue;
      busy = true;
      const std::optional<Sample> sample = workers[w]->Poll();
      if (!sample) continue;
      const Job job = workers[w]->job();
      workers[w].reset();
      if (absl::Status status = log.Append(*sample); !status.ok()) return status;
      ++progress.done;
      if (sample->failed.empty()) {
        forecast.Add(sample->point, sample->seconds);
      } else {
        const size_t before = jobs.size();
        std::erase_if(jobs, [&](const Job& other) { return other.point == job.point; });
        progress.done += before - jobs.size();
      }
      progress.last = job.point;
      progress.left_seconds = forecast.Left(jobs, workers.size());
      on_sample(*sample, progress);
    }
    if (!busy) break;
    nanosleep(&moment, nullptr);
  }
  workers.clear();  // what still runs is killed, and measured again the next time
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  return !interrupted;
}

}  // namespace l3c::tools::sweep
