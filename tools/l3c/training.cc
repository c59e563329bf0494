#include "tools/l3c/training.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "nlohmann/json.hpp"
#include "runtime/checkpoint.h"
#include "runtime/timeline.h"
#include "tools/l3c/files.h"
#include "tools/l3c/progress.h"
#include "tools/l3c/run_folder.h"
#include "tools/l3c/timeline_json.h"

namespace l3c::tools {
namespace {

using nlohmann::ordered_json;

int64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

// The first Ctrl-C stops cleanly; the second gives up.
void OnInterrupt(int) {
  static volatile std::sig_atomic_t asked = 0;
  if (asked) {
    constexpr char kGone[] =
        "\ninterrupted twice: stopped at once; what was checkpointed before is kept\n";
    (void)!write(STDERR_FILENO, kGone, sizeof kGone - 1);
    _exit(130);
  }
  asked = 1;
  runtime::RequestStop();
}

RunReporter::Style StyleFor(const Presentation& presentation) {
  if (presentation.json) return RunReporter::Style::kJson;
  return isatty(STDERR_FILENO) ? RunReporter::Style::kBar : RunReporter::Style::kLines;
}

// `before`: seconds from the command's beginning to the reporter's.
ordered_json DoneEvent(const runtime::RunResult& result, const RunReporter& reporter,
                       double compile_seconds, double before) {
  ordered_json done = {{"event", "done"}};
  bool has_loss = false;
  for (const runtime::Value& metric : result.metrics) {
    done[metric.name] = JsonNumber(metric.value);
    has_loss = has_loss || metric.name == "loss";
  }
  // Without an evaluation the training loss is the loss.
  for (const runtime::Value& metric : result.metrics) {
    if (!has_loss && metric.name == "train_loss") done["loss"] = JsonNumber(metric.value);
  }
  done["steps"] = result.steps;
  done["samples"] = result.samples;
  done["train_seconds"] = result.train_seconds;
  done["samples_per_second"] = result.samples_per_second;
  if (const std::optional<double> step = reporter.MedianStepSeconds()) {
    done["step_ms"] = *step * 1000;
  }
  if (const std::optional<double> first = reporter.FirstStepSeconds()) {
    done["first_step_s"] = before + *first;
  }
  done["compile_seconds"] = compile_seconds;
  done["peak_rss_bytes"] = PeakResidentBytes();
  done["weights_sha256"] = result.weights_sha256;
  done["interrupted"] = result.interrupted;
  if (!result.checkpoint.empty()) done["checkpoint"] = result.checkpoint;
  return done;
}

void PrintSummary(const runtime::RunResult& result, double compile_seconds, bool trained) {
  std::string figures;
  char text[128];
  for (const runtime::Value& metric : result.metrics) {
    if (metric.name.starts_with("train_")) continue;
    const double value = metric.name == "accuracy" ? metric.value * 100 : metric.value;
    std::snprintf(text, sizeof text, metric.name == "accuracy" ? "%s %.2f %%, " : "%s %.4f, ",
                  metric.name.c_str(), std::isnan(value) ? std::abs(value) : value);
    figures += text;
  }
  if (trained) {
    std::cout << figures << "trained " << WithThousands(result.steps) << " steps in "
              << Duration(result.train_seconds) << " ("
              << WithThousands(static_cast<int64_t>(result.samples_per_second))
              << " samples/s), compiled in " << Duration(compile_seconds) << "\n";
  } else {
    std::cout << figures << "evaluated in " << Duration(result.seconds) << "\n";
  }
  std::cout << "weights sha256 " << result.weights_sha256 << "\n";
}

}  // namespace

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int TrainAndTell(const l0::Plan& plan, const runtime::KernelTable& kernels,
                 runtime::RunOptions run_options, const Presentation& presentation,
                 double compile_seconds) {
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  // A limit on the size of files is told like a full disk, and not by the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const double before = SecondsSince(presentation.begun);
  RunReporter reporter(plan, StyleFor(presentation), presentation.color,
                       EventsPath(run_options.output));
  std::optional<runtime::Timeline> timeline;
  if (!presentation.timeline.empty() || presentation.observe)
    run_options.timeline = &timeline.emplace();
  const absl::StatusOr<runtime::RunResult> result =
      runtime::Train(plan, kernels, run_options, reporter);
  reporter.ClearBar();
  if (!presentation.timeline.empty() && !WriteTimeline(plan, *timeline, presentation.timeline))
    return 1;
  if (!result.ok()) {
    const absl::StatusOr<std::string> kept = runtime::FindCheckpoint(run_options.output);
    EnvironmentError(std::string(result.status().message()),
                     reporter.trained() && kept.ok()
                         ? "the last checkpoint is kept: " + *kept +
                               "; mend the cause and go on with: " + presentation.resume + " " +
                               run_options.output
                         : "");
    return 1;
  }
  if (!result->finite) {
    std::cerr
        << "warning: a figure or a weight is not a finite number: training diverged; lower the "
        << "learning rate or look at the data\n";
  }
  if (presentation.observe && !presentation.observe(*timeline)) return 1;
  reporter.Emit(DoneEvent(*result, reporter, compile_seconds, before));
  if (!presentation.json) {
    if (result->interrupted) {
      std::cout << "interrupted after step " << WithThousands(result->steps)
                << "; checkpoint kept: " << result->checkpoint
                << "\ncontinue with: " << presentation.resume << " " << run_options.output << "\n";
    } else {
      PrintSummary(*result, compile_seconds, /*trained=*/true);
      std::cout << "plans, events and checkpoints are in " << run_options.output << "\n";
    }
  }
  if (!reporter.EventsWritten()) {
    EnvironmentError(EventsPath(run_options.output) + ": could not be written to its end",
                     "what was trained is kept: " + result->checkpoint);
    return 1;
  }
  return result->interrupted ? 130 : 0;
}

int EvaluateAndTell(const l0::Plan& plan, const runtime::KernelTable& kernels,
                    const runtime::RunOptions& run_options, const Presentation& presentation,
                    double compile_seconds) {
  const double before = SecondsSince(presentation.begun);
  RunReporter reporter(plan, StyleFor(presentation), presentation.color, "");
  const absl::StatusOr<runtime::RunResult> result =
      runtime::Evaluate(plan, kernels, run_options, reporter);
  reporter.ClearBar();
  if (!result.ok()) {
    EnvironmentError(std::string(result.status().message()));
    return 1;
  }
  reporter.Emit(DoneEvent(*result, reporter, compile_seconds, before));
  if (!presentation.json) PrintSummary(*result, compile_seconds, /*trained=*/false);
  return 0;
}

}  // namespace l3c::tools
