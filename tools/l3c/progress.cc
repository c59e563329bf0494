#include "tools/l3c/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>

#include "tools/l3c/json_lines.h"

namespace l3c::tools {
namespace {

using nlohmann::ordered_json;

int TerminalColumns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Figure(double value) {
  char text[32];
  // What a NaN's sign is says nothing.
  std::snprintf(text, sizeof text, "%.4f", std::isnan(value) ? std::abs(value) : value);
  return text;
}

// A run that was killed may have written half of its last line.
void CutTornLine(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size == 0) return;
  std::ifstream file(path, std::ios::binary);
  constexpr uintmax_t kMaxLine = 1 << 16;
  const uintmax_t begin = size > kMaxLine ? size - kMaxLine : 0;
  file.seekg(static_cast<std::streamoff>(begin));
  const std::string tail{std::istreambuf_iterator<char>(file), {}};
  const size_t newline = tail.rfind('\n');
  if (newline == std::string::npos && begin > 0) return;
  const uintmax_t whole = newline == std::string::npos ? 0 : begin + newline + 1;
  if (whole != size) std::filesystem::resize_file(path, whole, error);
}

}  // namespace

std::string WithThousands(int64_t value) {
  std::string digits = std::to_string(value);
  for (int i = static_cast<int>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

ordered_json JsonNumber(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
}

std::string Duration(double seconds) {
  char text[48];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    const auto whole = static_cast<int64_t>(seconds);
    if (whole < 3600) {
      std::snprintf(text, sizeof text, "%ld m %02ld s", whole / 60, whole % 60);
    } else {
      std::snprintf(text, sizeof text, "%ld h %02ld m", whole / 3600, whole / 60 % 60);
    }
  }
  return text;
}

RunReporter::RunReporter(const l0::Plan& plan, Style style, bool color,
                         const std::string& events_path)
    : plan_(plan), style_(style), color_(color) {
  for (const l0::Phase& phase : plan.phases) {
    total_steps_ += phase.steps;
    total_epochs_ += phase.epochs;
  }
  if (events_path.empty()) return;
  CutTornLine(events_path);
  events_.open(events_path, std::ios::app);
  events_wanted_ = true;
}

RunReporter::~RunReporter() { ClearBar(); }

void RunReporter::Emit(const ordered_json& event) {
  if (events_.is_open()) events_ << event.dump() << "\n" << std::flush;
  if (style_ != Style::kJson) return;
  PrintJsonLine(event);
  std::cout << std::flush;
}

void RunReporter::TimeStep() {
  constexpr size_t kStepsKept = 1 << 16;
  const Clock::time_point now = Clock::now();
  const auto since = [&](Clock::time_point start) {
    return std::chrono::duration<double>(now - start).count();
  };
  if (!first_step_seconds_) first_step_seconds_ = since(begun_);
  if (step_before_) {
    const auto seconds = static_cast<float>(since(*step_before_));
    if (step_seconds_.size() < kStepsKept) {
      step_seconds_.push_back(seconds);
    } else {
      step_seconds_[steps_timed_ % kStepsKept] = seconds;
    }
    ++steps_timed_;
  }
  step_before_ = now;
}

std::optional<double> RunReporter::MedianStepSeconds() const {
  if (step_seconds_.empty()) return std::nullopt;
  std::vector<float> sorted = step_seconds_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void RunReporter::OnReport(const runtime::Report& report) {
  trained_ = trained_ || report.split == "train";
  if (report.split == "train") TimeStep();
  if (!events_.is_open() || report.split != "train") return;
  std::map<std::string, double> values;
  for (const runtime::Value& value : report.values) values[value.name] = value.value;
  ordered_json event = {{"event", "step"}, {"step", report.argument + 1}};
  for (const l0::Metric& metric : plan_.metrics) {
    if (metric.split != report.split) continue;
    const auto numerator = values.find(metric.numerator);
    const auto denominator = values.find(metric.denominator);
    if (numerator == values.end() || denominator == values.end()) continue;
    event[metric.name] = JsonNumber(numerator->second / denominator->second);
  }
  events_ << event.dump() << "\n";
}

void RunReporter::OnProgress(const runtime::Progress& progress) {
  if (style_ == Style::kBar) DrawBar(progress);
}

void RunReporter::DrawBar(const runtime::Progress& progress) {
  const bool training = progress.split == "train";
  std::string right =
      " " + WithThousands(static_cast<int64_t>(progress.samples_per_second)) + " samples/s";
  double fraction = 0;
  std::string left = "evaluating ";
  if (training) {
    fraction = total_steps_ > 0 ? static_cast<double>(progress.steps) / total_steps_ : 0;
    left = "step " + WithThousands(progress.steps) + "/" + WithThousands(total_steps_) + " ";
    const double rate = progress.samples_per_second;
    const double per_step = progress.steps > 0 && rate > 0
                                ? static_cast<double>(progress.samples) / progress.steps / rate
                                : 0;
    if (per_step > 0) {
      right +=
          ", " + Duration(per_step * static_cast<double>(total_steps_ - progress.steps)) + " left";
    }
  }
  const int width =
      std::clamp(TerminalColumns() - static_cast<int>(left.size() + right.size()) - 3, 0, 40);
  std::string bar;
  if (training && width >= 8) {
    const int full = static_cast<int>(fraction * width);
    bar = "[" + std::string(static_cast<size_t>(full), '=') +
          std::string(static_cast<size_t>(width - full), ' ') + "]";
  }
  std::cerr << "\r\033[K" << left << (color_ ? "\033[32m" : "") << bar << (color_ ? "\033[0m" : "")
            << right << std::flush;
  bar_drawn_ = true;
}

void RunReporter::ClearBar() {
  if (!bar_drawn_) return;
  std::cerr << "\r\033[K" << std::flush;
  bar_drawn_ = false;
}

void RunReporter::OnPeriod(const runtime::Period& period) {
  step_before_.reset();
  ordered_json event;
  const bool training = period.split == "train";
  event["event"] = training ? "epoch" : "evaluation";
  event["epoch"] = period.argument;
  std::string text;
  for (const runtime::Value& metric : period.metrics) {
    const std::string name = training ? "train_" + metric.name : metric.name;
    event[name] = JsonNumber(metric.value);
    text += "  " + name + " " + Figure(metric.value);
  }
  event["steps"] = period.steps;
  event["seconds"] = period.seconds;
  Emit(event);
  if (style_ == Style::kJson) return;
  ClearBar();
  if (training) {
    std::cout << "epoch " << period.argument;
    if (total_epochs_ > 0) std::cout << "/" << total_epochs_;
    std::cout << text << "  " << Duration(period.seconds) << std::endl;
  } else {
    std::cout << "     test" << text << std::endl;
  }
}

bool RunReporter::EventsWritten() {
  if (!events_wanted_) return true;
  events_.flush();
  return events_.is_open() && events_.good();
}

void RunReporter::OnCheckpoint(const runtime::CheckpointWritten& checkpoint) {
  step_before_.reset();
  Emit({{"event", "checkpoint"}, {"step", checkpoint.steps}, {"path", checkpoint.path}});
}

}  // namespace l3c::tools
