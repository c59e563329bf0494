// What a training run shows while it goes on: a bar on a terminal, a line an epoch elsewhere, JSON
// lines with --json; and events.jsonl in the run's folder, which also holds every step's loss.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/plan.h"
#include "nlohmann/json.hpp"
#include "runtime/events.h"

namespace l3c::tools {

class RunReporter : public runtime::EventSink {
 public:
  enum class Style : uint8_t { kBar, kLines, kJson };

  // `total_steps`: of all phases. `events_path`: "" for no file; an existing file is appended to.
  RunReporter(const l0::Plan& plan, Style style, bool color, const std::string& events_path);
  ~RunReporter() override;

  void OnReport(const runtime::Report& report) override;
  void OnProgress(const runtime::Progress& progress) override;
  void OnPeriod(const runtime::Period& period) override;
  void OnCheckpoint(const runtime::CheckpointWritten& checkpoint) override;

  // Removes the bar, so that ordinary output can follow.
  void ClearBar();
  // Appends to events.jsonl, and prints when the style is JSON.
  void Emit(const nlohmann::ordered_json& event);

  bool trained() const { return trained_; }  // at least a step
  // From this reporter's beginning to the first training step's loss; nothing before it.
  std::optional<double> FirstStepSeconds() const { return first_step_seconds_; }
  // From one training step's loss to the next's, the median; evaluations, checkpoints and ends of
  // epochs do not count, nor does the first step. Nothing for less than two steps.
  std::optional<double> MedianStepSeconds() const;
  // False when events.jsonl is not what it should be: a full disk, say.
  bool EventsWritten();

 private:
  using Clock = std::chrono::steady_clock;

  void DrawBar(const runtime::Progress& progress);
  void TimeStep();

  const l0::Plan& plan_;
  const Style style_;
  const bool color_;
  int64_t total_steps_ = 0;
  int64_t total_epochs_ = 0;
  bool bar_drawn_ = false;
  bool trained_ = false;
  bool events_wanted_ = false;
  std::ofstream events_;
  const Clock::time_point begun_ = Clock::now();
  std::optional<double> first_step_seconds_;
  std::optional<Clock::time_point> step_before_;  // nothing where something else came after it
  std::vector<float> step_seconds_;               // the last ones, as many as kStepsKept
  size_t steps_timed_ = 0;
};

// "1,234,567", "2.4 s", "1 m 05 s", "270,602"
std::string WithThousands(int64_t value);
std::string Duration(double seconds);
// JSON has no infinities and no NaN: "inf", "-inf" and "nan" stand for them.
nlohmann::ordered_json JsonNumber(double value);

}  // namespace l3c::tools
