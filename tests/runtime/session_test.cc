// Whole runs of the linear plan, with the kernels interpreted.
#include "runtime/session.h"

#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "gtest/gtest.h"
#include "layers/tensor/philox.h"
#include "runtime/checkpoint.h"
#include "runtime/folder_lock.h"
#include "runtime/interpreter_kernels.h"
#include "runtime/region_memory.h"
#include "runtime/safetensors.h"
#include "runtime/timeline.h"
#include "tests/runtime/linear_plan.h"
#include "tests/runtime/temp_folder.h"

namespace l3c::runtime {
namespace {

using testing::LinearOptions;
using testing::LinearPlan;
using testing::TempFolder;

struct Recorder : EventSink {
  std::vector<Report> reports;
  std::vector<Period> periods;
  std::vector<CheckpointWritten> checkpoints;
  int64_t stop_at = -1;  // ask for a stop at this report of `stop_split`
  std::string stop_split = "train";

  void OnReport(const Report& report) override {
    reports.push_back(report);
    if (report.split == stop_split && stop_at-- == 0) RequestStop();
  }
  void OnPeriod(const Period& period) override { periods.push_back(period); }
  void OnCheckpoint(const CheckpointWritten& checkpoint) override {
    checkpoints.push_back(checkpoint);
  }
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() { testing::WriteLinearData(data_.path()); }

  l0::Plan Plan(const LinearOptions& options = {}) const {
    return LinearPlan(data_.path(), options);
  }

  static RunResult RunOk(const l0::Plan& plan, const RunOptions& options, Recorder& recorder) {
    InterpreterKernels kernels(plan);
    absl::StatusOr<RunResult> result = Train(plan, kernels, options, recorder);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : RunResult{};
  }
  static RunResult RunOk(const l0::Plan& plan, const RunOptions& options = {}) {
    Recorder recorder;
    return RunOk(plan, options, recorder);
  }
  static absl::Status RunBad(const l0::Plan& plan, const RunOptions& options = {}) {
    Recorder recorder;
    InterpreterKernels kernels(plan);
    absl::Status status = Train(plan, kernels, options, recorder).status();
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(recorder.reports.empty());
    return status;
  }

  TempFolder data_;
};

// Two runs agree in everything but times.
void ExpectSame(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.weights_sha256, b.weights_sha256);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.samples, b.samples);
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (size_t i = 0; i < a.metrics.size(); ++i) {
    EXPECT_EQ(a.metrics[i].name, b.metrics[i].name);
    EXPECT_EQ(std::bit_cast<uint64_t>(a.metrics[i].value),
              std::bit_cast<uint64_t>(b.metrics[i].value));
  }
}

// The same training, written out: the sums run in the order that the kernels give them.
struct Reference {
  std::vector<float> w = std::vector<float>(4), v_w = std::vector<float>(4);
  float b = 0, v_b = 0;
  std::vector<double> losses;  // of each epoch

  explicit Reference(int64_t epochs) {
    tensor::FillNormal(3, 11, 0.0f, 0.5f, w);
    const testing::LinearData data = testing::MakeLinearData("train");
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      const std::vector<uint32_t> order =
          tensor::ShuffledIndices(testing::kTrainSamples, 7, static_cast<uint64_t>(epoch));
      double squares = 0, rows = 0;
      for (size_t first = 0; first < order.size(); first += 8) {
        const size_t count = std::min<size_t>(8, order.size() - first);
        float e[8] = {}, l = 0;
        for (size_t i = 0; i < count; ++i) {
          const std::vector<float>& x = data.x[order[first + i]];
          float p = 0;
          for (size_t j = 0; j < 4; ++j) p += x[j] * w[j];
          e[i] = (p + b) + -data.y[order[first + i]];
        }
        for (float error : e) l += error * error;
        squares += l;
        rows += static_cast<double>(count);
        const float n = 1.0f / static_cast<float>(count);
        for (size_t j = 0; j < 4; ++j) {
          float g = 0;
          for (size_t i = 0; i < count; ++i) g += data.x[order[first + i]][j] * e[i];
          v_w[j] = 0.9f * v_w[j] + g * n;
          w[j] += -0.05f * v_w[j];
        }
        float g = 0;
        for (float error : e) g += error;
        v_b = 0.9f * v_b + g * n;
        b += -0.05f * v_b;
      }
      losses.push_back(squares / rows);
    }
  }
};

TEST_F(SessionTest, TrainsToTheReferenceNumbers) {
  TempFolder out;
  Recorder recorder;
  RunOptions options;
  options.output = out.path();
  const RunResult result = RunOk(Plan(), options, recorder);
  EXPECT_EQ(result.steps, 15);
  EXPECT_EQ(result.samples, 5 * testing::kTrainSamples);
  EXPECT_FALSE(result.interrupted);

  const Reference reference(5);
  auto tensors = ReadSafetensors(result.checkpoint + "/parameters.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  float w[4], b;
  std::memcpy(w, tensors->at("w").bytes.data(), sizeof w);
  std::memcpy(&b, tensors->at("b").bytes.data(), sizeof b);
  for (size_t j = 0; j < 4; ++j) EXPECT_EQ(w[j], reference.w[j]) << j;
  EXPECT_EQ(b, reference.b);

  std::vector<double> losses;
  for (const Period& period : recorder.periods) {
    if (period.split == "train") losses.push_back(period.metrics.at(0).value);
  }
  EXPECT_EQ(losses, reference.losses);
  EXPECT_LT(losses.back(), losses.front() / 5);
}

TEST_F(SessionTest, ThreadsAndDepthDoNotShow) {
  const RunResult first = RunOk(Plan(), {});
  for (int depth : {1, 2, 3, 4, 5}) {
    LinearOptions shape;
    shape.depth = depth;
    const l0::Plan plan = Plan(shape);
    for (int threads : {1, 2, 4, 7}) {
      RunOptions options;
      options.threads = threads;
      ExpectSame(RunOk(plan, options), first);
    }
    // Loaders that read from the disk share its files.
    RunOptions disk;
    disk.resident_bytes = 0;
    ExpectSame(RunOk(plan, disk), first);
  }
}

TEST_F(SessionTest, EpochsEndWhereTheStepsDo) {
  Recorder recorder;
  LinearOptions shape;
  shape.steps = 7;
  const RunResult result = RunOk(Plan(shape), {}, recorder);
  EXPECT_EQ(result.steps, 7);
  std::vector<int64_t> train;
  for (const Period& period : recorder.periods) {
    if (period.split == "train") train.push_back(period.steps);
  }
  EXPECT_EQ(train, (std::vector<int64_t>{3, 3, 1}));
}

TEST_F(SessionTest, EvaluatesAndSavesAtItsCadence) {
  TempFolder out;
  LinearOptions shape;
  shape.eval_every = 2;
  shape.checkpoint_every = 3;
  Recorder recorder;
  RunOptions options;
  options.output = out.path();
  RunOk(Plan(shape), options, recorder);
  std::vector<int64_t> evaluated, saved;
  for (const Period& period : recorder.periods) {
    if (period.split == "test") evaluated.push_back(period.argument);
  }
  for (const CheckpointWritten& checkpoint : recorder.checkpoints) {
    saved.push_back(checkpoint.steps);
  }
  EXPECT_EQ(evaluated, (std::vector<int64_t>{2, 4, 5}));  // the last epoch is always evaluated
  EXPECT_EQ(saved, (std::vector<int64_t>{9, 15}));        // and the end always saved
}

// However often a run is stopped, it ends like one that was not.
TEST_F(SessionTest, ResumesBitwise) {
  int interruptions = 0;
  for (const auto& [depth, phases] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2)}) {
    LinearOptions shape;
    shape.depth = depth;
    shape.phases = phases;
    shape.steps = 8;
    const l0::Plan plan = Plan(shape);
    const RunResult whole = RunOk(plan);
    for (const auto& [split, last] : {std::pair("train", 7), std::pair("test", 3)}) {
      for (int64_t stop = 0; stop <= last; ++stop) {
        TempFolder out;
        RunOptions options;
        options.output = out.path();
        int runs = 0;
        for (RunResult result;; ++runs) {
          ASSERT_LT(runs, 40);
          Recorder recorder;
          recorder.stop_at = stop;
          recorder.stop_split = split;
          result = RunOk(plan, options, recorder);
          options.checkpoint = out.path();
          if (result.interrupted) {
            EXPECT_FALSE(result.checkpoint.empty());
            continue;
          }
          ExpectSame(result, whole);
          break;
        }
        interruptions += runs;
      }
    }
  }
  EXPECT_GT(interruptions, 20);  // a stop near the end may come too late to interrupt
}

TEST_F(SessionTest, ResumingAFinishedRunChangesNothing) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  const RunResult first = RunOk(plan, options);
  options.checkpoint = out.path();
  ExpectSame(RunOk(plan, options), first);
}

TEST_F(SessionTest, EvaluatesACheckpoint) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  const RunResult trained = RunOk(plan, options);
  RunOptions evaluation;
  evaluation.checkpoint = out.path();
  Recorder recorder;
  InterpreterKernels kernels(plan);
  auto result = Evaluate(plan, kernels, evaluation, recorder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->weights_sha256, trained.weights_sha256);
  ASSERT_EQ(result->metrics.size(), 1u);
  EXPECT_EQ(result->metrics[0].name, "loss");
  EXPECT_EQ(result->metrics[0].value, trained.metrics[0].value);
}

TEST_F(SessionTest, KeepsTheLastCheckpoints) {
  TempFolder out;
  std::filesystem::create_directories(out / "checkpoints/step-000000099");
  std::filesystem::create_directories(out / "checkpoints/.partial-step-000000100");
  RunOptions options;
  options.output = out.path();
  RunOk(Plan(), options);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out / "checkpoints")) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"latest", "step-000000012", "step-000000015"}));
}

// A crash while a checkpoint was written leaves a folder aside; the one before it counts.
TEST_F(SessionTest, SurvivesACrashDuringACheckpoint) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  const RunResult whole = RunOk(plan, options);
  const std::string folder = out / "checkpoints";
  std::filesystem::rename(folder + "/step-000000015", folder + "/.partial-step-000000015");
  std::filesystem::remove(folder + "/.partial-step-000000015/SHA256SUMS");
  options.checkpoint = out.path();
  Recorder recorder;
  ExpectSame(RunOk(plan, options, recorder), whole);
  EXPECT_EQ(recorder.reports.front().argument, 12);
}

TEST_F(SessionTest, RefusesADamagedCheckpoint) {
  for (const std::string file : {"parameters.safetensors", "state.safetensors", "state.json"}) {
    TempFolder out;
    RunOptions options;
    options.output = out.path();
    const l0::Plan plan = Plan();
    const RunResult result = RunOk(plan, options);
    const std::string path = result.checkpoint + "/" + file;
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) - 3));
    stream.put('\x7f');
    stream.close();
    options.checkpoint = out.path();
    const absl::Status status = RunBad(plan, options);
    EXPECT_NE(status.message().find(file), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("damaged"), absl::string_view::npos) << status;
    std::filesystem::remove(path);
    EXPECT_NE(RunBad(plan, options).message().find(file), absl::string_view::npos);
  }
}

// The error for a damaged checkpoint tells from which older one the run can go on.
TEST_F(SessionTest, ADamagedCheckpointLeadsToTheOneBefore) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  options.keep_checkpoints = 3;
  const l0::Plan plan = Plan();
  const RunResult whole = RunOk(plan, options);
  EXPECT_EQ(whole.checkpoint, out / "checkpoints/step-000000015");
  std::filesystem::resize_file(whole.checkpoint + "/state.safetensors", 5);
  options.checkpoint = out.path();
  const std::string second = out / "checkpoints/step-000000012";
  absl::Status status = RunBad(plan, options);
  EXPECT_NE(status.message().find(second + ", is sound"), absl::string_view::npos) << status;
  // One that is damaged as well is passed over.
  std::filesystem::remove(second + "/state.json");
  const std::string third = out / "checkpoints/step-000000009";
  options.checkpoint = whole.checkpoint + "/";
  status = RunBad(plan, options);
  EXPECT_NE(status.message().find(third + ", is sound"), absl::string_view::npos) << status;
  // As the error says: without the damaged ones, the run's folder stands for the sound one.
  EXPECT_NE(status.message().find("remove " + whole.checkpoint + " and resume"),
            absl::string_view::npos)
      << status;
  std::filesystem::remove_all(whole.checkpoint);
  std::filesystem::remove_all(second);
  options.checkpoint = out.path();
  ExpectSame(RunOk(plan, options), whole);
  options.checkpoint = third;
  // With nothing older, there is nothing to say.
  std::filesystem::remove(third + "/SHA256SUMS");
  EXPECT_EQ(RunBad(plan, options).message().find("sound"), absl::string_view::npos);
}

TEST_F(SessionTest, RefusesAPipeInACheckpoint) {
  for (const std::string file : {"parameters.safetensors", "state.json", "SHA256SUMS"}) {
    TempFolder out;
    RunOptions options;
    options.output = out.path();
    options.keep_checkpoints = 1;
    const l0::Plan plan = Plan();
    const std::string path = RunOk(plan, options).checkpoint + "/" + file;
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    options.checkpoint = out.path();
    const absl::Status status = RunBad(plan, options);
    EXPECT_NE(status.message().find(path + ": not a regular file"), absl::string_view::npos)
        << status;
  }
}

// NaN and infinity reach the result, and what was trained is saved and can be read.
TEST_F(SessionTest, ADivergedRunIsToldAndSaved) {
  TempFolder data, out;
  testing::WriteLinearData(data.path());
  std::string lines;
  for (int64_t i = 0; i < testing::kTrainSamples; ++i) lines += "1e30,1e30,1e30,1e30\n";
  data.Write("train.x.csv", lines);
  RunOptions options;
  options.output = out.path();
  options.data["points"] = data.path();
  const l0::Plan plan = Plan();
  const RunResult whole = RunOk(plan, options);
  EXPECT_FALSE(whole.finite);
  EXPECT_EQ(whole.steps, 15);
  ASSERT_EQ(whole.metrics.size(), 2u);
  EXPECT_EQ(whole.metrics[0].name, "loss");
  EXPECT_FALSE(std::isfinite(whole.metrics[0].value));
  EXPECT_FALSE(std::isfinite(whole.metrics[1].value));

  options.checkpoint = whole.checkpoint;
  ExpectSame(RunOk(plan, options), whole);
  InterpreterKernels kernels(plan);
  Recorder recorder;
  const absl::StatusOr<RunResult> evaluated = Evaluate(plan, kernels, options, recorder);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_FALSE(evaluated->finite);
}

// Two runs in one folder would remove each other's checkpoints.
TEST_F(SessionTest, OneRunAtATimeWritesToAFolder) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  {
    const absl::StatusOr<FolderLock> other = FolderLock::Take(out.path());
    ASSERT_TRUE(other.ok()) << other.status();
    const absl::Status status = RunBad(plan, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("another run is writing"), absl::string_view::npos) << status;
    EXPECT_FALSE(std::filesystem::exists(out / "checkpoints"));
    // Reading does not disturb it.
    InterpreterKernels kernels(plan);
    Recorder recorder;
    EXPECT_TRUE(Evaluate(plan, kernels, options, recorder).ok());
  }
  EXPECT_TRUE(RunOk(plan, options).finite);
}

TEST_F(SessionTest, RefusesACheckpointOfAnotherPlan) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  RunOk(Plan(), options);
  options.checkpoint = out.path();
  LinearOptions other;
  other.steps = 30;
  const absl::Status status = RunBad(Plan(other), options);
  EXPECT_NE(status.message().find("another plan"), absl::string_view::npos) << status;
  // Its weights can be evaluated all the same.
  const l0::Plan plan = Plan(other);
  InterpreterKernels kernels(plan);
  Recorder recorder;
  EXPECT_TRUE(Evaluate(plan, kernels, options, recorder).ok());
}

TEST_F(SessionTest, RefusesWhatIsNoCheckpoint) {
  TempFolder empty;
  RunOptions options;
  options.checkpoint = empty.path();
  EXPECT_NE(RunBad(Plan(), options).message().find("no checkpoint"), absl::string_view::npos);
}

// Killed before its first checkpoint, a run has nothing to go on from but its beginning.
TEST_F(SessionTest, BeginsAnewWhereThereIsNoCheckpoint) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  options.checkpoint = out.path();
  options.or_from_start = true;
  const l0::Plan plan = Plan();
  ExpectSame(RunOk(plan, options), RunOk(plan));
}

// Where folders cannot be exchanged, what is replaced stands aside for a moment; a crash then must
// not make the run forget it.
TEST_F(SessionTest, FindsACheckpointThatWasBeingReplaced) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  const RunResult whole = RunOk(plan, options);
  const std::string folder = out / "checkpoints";
  std::filesystem::rename(folder + "/step-000000015", folder + "/.replaced-step-000000015");
  std::filesystem::remove_all(folder + "/step-000000012");
  options.checkpoint = out.path();
  Recorder recorder;
  ExpectSame(RunOk(plan, options, recorder), whole);
  EXPECT_TRUE(recorder.reports.empty());
}

// A file of data that goes away in the middle of an epoch ends the run with its name; what was
// saved stays, and with the file back the run ends as if nothing had been.
TEST_F(SessionTest, AFileThatFailsInMidEpochLosesNothing) {
  for (FileReader::Kind kind : {FileReader::Kind::kPortable, FileReader::Kind::kAuto}) {
    TempFolder data, out;
    std::string elements;
    for (const auto& row : testing::MakeLinearData("train").x) {
      elements.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    }
    testing::WriteLinearData(data.path());
    std::filesystem::remove(data / "train.x.csv");
    data.Write("train.x.raw", elements);
    const l0::Plan plan = Plan();
    const RunResult whole = RunOk(plan);
    struct Saboteur : Recorder {
      std::string file;
      void OnReport(const Report& report) override {
        Recorder::OnReport(report);
        if (report.split == "train" && report.argument == 7) {
          std::filesystem::resize_file(file, 20);
        }
      }
    } saboteur;
    saboteur.file = data / "train.x.raw";
    RunOptions options;
    options.output = out.path();
    options.data["points"] = data.path();
    options.reader = kind;
    options.resident_bytes = 0;
    InterpreterKernels kernels(plan);
    const absl::Status status = Train(plan, kernels, options, saboteur).status();
    EXPECT_NE(status.message().find("train.x.raw: has become shorter"), absl::string_view::npos)
        << status;
    ASSERT_FALSE(saboteur.checkpoints.empty());
    data.Write("train.x.raw", elements);
    options.checkpoint = out.path();
    ExpectSame(RunOk(plan, options), whole);
  }
}

TEST_F(SessionTest, ATimelineShowsEveryCommand) {
  Timeline timeline;
  RunOptions options;
  options.timeline = &timeline;
  const l0::Plan plan = Plan();
  ExpectSame(RunOk(plan, options), RunOk(plan));
  EXPECT_EQ(timeline.dropped(), 0);
  int64_t trained = 0, loaded = 0;
  for (l0::StreamId s = 0; s < timeline.streams(); ++s) {
    int64_t end = 0;
    for (const TimelineSpan& span : timeline.Spans(s)) {
      EXPECT_LE(end, span.begin);  // a stream does one thing after another
      EXPECT_LE(span.begin, span.end);
      end = span.end;
      const l0::Sequence& sequence = plan.sequences[span.sequence];
      EXPECT_EQ(sequence.stream, s);
      const l0::CommandKind kind = sequence.commands[span.command].kind;
      if (kind == l0::CommandKind::kLoad) ++loaded;
      if (kind == l0::CommandKind::kReport) ++trained;
    }
  }
  EXPECT_EQ(loaded, 15 + 5 * 2);  // batches of training and of five evaluations
  EXPECT_EQ(trained, loaded);
  Timeline small(1024);
  options.timeline = &small;
  LinearOptions longer;
  longer.steps = 300;
  RunOk(Plan(longer), options);
  EXPECT_GT(small.dropped(), 0);
}

// What a unit may only read cannot be written, whatever the code that runs it does.
TEST(RegionMemoryDeathTest, PagesHaveTheRightsOfTheirRegions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  l0::ControlUnit unit;
  l0::Region limits, cursor, signals;
  limits.name = "limits";
  limits.size = 16;
  limits.values = {7, 8};
  cursor.name = "cursor";
  cursor.access = l0::RegionAccess::kReadWrite;
  cursor.size = 16;
  cursor.values = {1};
  signals.name = "signals";
  signals.size = 8;
  unit.regions = {limits, cursor, signals};
  std::atomic<int64_t> host{5};
  auto memory = RegionMemory::Make(unit, {}, host);
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto word = [&](size_t region, size_t at) {
    return reinterpret_cast<int64_t*>(memory->bytes()[region].data()) + at;
  };
  EXPECT_EQ(*word(0, 1), 8);
  EXPECT_EQ(*word(2, 0), 5);
  *word(1, 1) = 3;
  EXPECT_EQ(memory->Snapshot(), (RegionMemory::Words{{"cursor", {1, 3}}}));
  EXPECT_DEATH(*word(0, 0) = 1, "");
  EXPECT_EQ(RegionMemory::Make(unit, {{"cursor", {1}}}, host).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionTest, RefusesAnOutputThatCannotBeWritten) {
  TempFolder out;
  out.Write("file", "");
  RunOptions options;
  options.output = out / "file";
  const absl::Status status = RunBad(Plan(), options);
  EXPECT_NE(status.message().find(options.output), absl::string_view::npos) << status;
}

// A stop that comes when all is done interrupts nothing.
TEST_F(SessionTest, AStopAfterTheLastStepIsNoInterruption) {
  struct Late : Recorder {
    void OnCheckpoint(const CheckpointWritten& checkpoint) override {
      if (checkpoint.steps == 15) RequestStop();
    }
  } late;
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  EXPECT_FALSE(RunOk(Plan(), options, late).interrupted);
  EXPECT_FALSE(RunOk(Plan(), options).interrupted);  // and the next run does not hear of it
}

TEST_F(SessionTest, AStopBeforeTheRunEndsItAtOnce) {
  TempFolder out;
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  RequestStop();
  const RunResult result = RunOk(plan, options);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(result.finite);
  EXPECT_FALSE(result.checkpoint.empty());
  options.checkpoint = out.path();
  ExpectSame(RunOk(plan, options), RunOk(plan));
}

TEST_F(SessionTest, RunsOnSyntheticData) {
  std::filesystem::remove_all(data_ / "train.x.csv");
  RunOptions options;
  options.synthetic = true;
  const l0::Plan plan = Plan();
  ExpectSame(RunOk(plan, options), RunOk(plan, options));
}

TEST_F(SessionTest, DropsTheLastBatchWhenAsked) {
  LinearOptions shape;
  shape.drop_last = true;
  shape.steps_per_epoch = 2;
  shape.steps = 4;
  EXPECT_EQ(RunOk(Plan(shape)).samples, 32);
}

TEST_F(SessionTest, RefusesDataOfAnotherSize) {
  data_.Write("train.y.csv", "1\n2\n");
  EXPECT_NE(RunBad(Plan()).message().find("holds 2 samples"), absl::string_view::npos);
  data_.Write("train.x.csv", "1,2,3,4\n1,2,3,4\n");
  EXPECT_NE(RunBad(Plan()).message().find("made for 20"), absl::string_view::npos);
}

TEST_F(SessionTest, ReadsDataFromAnotherFolder) {
  TempFolder other;
  testing::WriteLinearData(other.path());
  const RunResult expected = RunOk(Plan());
  const l0::Plan plan = LinearPlan("nowhere");
  EXPECT_NE(RunBad(plan).message().find("nowhere"), absl::string_view::npos);
  RunOptions options;
  options.data["points"] = other.path();
  ExpectSame(RunOk(plan, options), expected);
}

// A kernel that the table does not have.
TEST_F(SessionTest, RefusesAMissingKernel) {
  struct Nothing : KernelTable {
    KernelFn Find(l0::KernelId) const override { return nullptr; }
  };
  Recorder recorder;
  const absl::Status status = Train(Plan(), Nothing(), {}, recorder).status();
  EXPECT_NE(status.message().find("predict"), absl::string_view::npos) << status;
}

// A disk that fails in the middle ends the run with the reason; what was saved stays.
TEST_F(SessionTest, AFailingCheckpointEndsTheRun) {
  TempFolder out;
  struct Saboteur : Recorder {
    std::string folder;
    void OnCheckpoint(const CheckpointWritten& checkpoint) override {
      Recorder::OnCheckpoint(checkpoint);
      if (checkpoints.size() == 2) {
        std::filesystem::rename(folder, folder + ".moved");
        std::ofstream(folder) << "in the way";
      }
    }
  } saboteur;
  saboteur.folder = out / "checkpoints";
  RunOptions options;
  options.output = out.path();
  const l0::Plan plan = Plan();
  InterpreterKernels kernels(plan);
  const absl::Status status = Train(plan, kernels, options, saboteur).status();
  EXPECT_NE(status.message().find("step-000000009"), absl::string_view::npos) << status;
  EXPECT_TRUE(std::filesystem::exists(out / "checkpoints.moved/step-000000006/SHA256SUMS"));
}

}  // namespace
}  // namespace l3c::runtime
