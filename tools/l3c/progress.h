// What a training run shows while it goes on: a bar on a terminal, a line an epoch elsewhere, JSON
// lines with --json; and events.jsonl in the run's folder, which also holds every step's loss.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

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
  // False when events.jsonl is not what it should be: a full disk, say.
  bool EventsWritten();

 private:
  void DrawBar(const runtime::Progress& progress);

  const l0::Plan& plan_;
  const Style style_;
  const bool color_;
  int64_t total_steps_ = 0;
  int64_t total_epochs_ = 0;
  bool bar_drawn_ = false;
  bool trained_ = false;
  bool events_wanted_ = false;
  std::ofstream events_;
};

// "1,234,567", "2.4 s", "1 m 05 s", "270,602"
std::string WithThousands(int64_t value);
std::string Duration(double seconds);
// JSON has no infinities and no NaN: "inf", "-inf" and "nan" stand for them.
nlohmann::ordered_json JsonNumber(double value);

}  // namespace l3c::tools
