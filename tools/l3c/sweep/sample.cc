#include "tools/l3c/sweep/sample.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/durable_file.h"

namespace l3c::tools::sweep {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxLog = size_t{1} << 30;

std::string Printed(const ordered_json& line) {
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string PrintOrigin(const SweepOrigin& origin) {
  return Printed({{"event", "sweep"},
                  {"version", 1},
                  {"grid", origin.grid},
                  {"build", origin.build},
                  {"machine", origin.machine}});
}

std::string CheckOrigin(const json& line, const SweepOrigin& origin) {
  if (line.value("event", "") != "sweep") return "it is no file of a sweep";
  if (line.at("version") != 1) return "it is of version " + line.at("version").dump();
  const auto check = [&](const char* name, const std::string& wanted) -> std::string {
    const auto found = line.at(name).get<std::string>();
    if (found == wanted) return "";
    return absl::StrCat("its samples are of another ", name, " (", found, "; this is ", wanted,
                        "), and are not mixed");
  };
  for (const auto& [name, wanted] :
       {std::pair("grid", &origin.grid), std::pair("build", &origin.build),
        std::pair("machine", &origin.machine)}) {
    if (std::string fault = check(name, *wanted); !fault.empty()) return fault;
  }
  return "";
}

Sample ReadSample(const json& line) {
  Sample sample;
  sample.point = line.at("point").get<std::string>();
  sample.repeat = line.at("repeat").get<int64_t>();
  sample.seconds = line.at("seconds").get<double>();
  sample.failed = line.value("failed", "");
  if (sample.failed.empty()) {
    for (const auto& [name, figure] : line.at("figures").items()) {
      sample.figures[name] = figure.get<double>();
    }
  }
  return sample;
}

}  // namespace

std::string PrintSample(const Sample& sample) {
  ordered_json line = {{"event", "sample"},
                       {"point", sample.point},
                       {"repeat", sample.repeat},
                       {"seconds", sample.seconds}};
  if (sample.failed.empty()) {
    ordered_json& figures = line["figures"] = ordered_json::object();
    for (const auto& [name, figure] : sample.figures) {
      if (std::isfinite(figure)) figures[name] = figure;
    }
  } else {
    line["failed"] = sample.failed;
  }
  return Printed(line);
}

SampleLog::~SampleLog() {
  if (file_ >= 0) close(file_);
}

SampleLog::SampleLog(SampleLog&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      samples_(std::move(other.samples_)) {}

absl::StatusOr<SampleLog> SampleLog::Open(const std::string& path, const SweepOrigin& origin) {
  SampleLog log;
  log.path_ = path;
  std::string text;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    absl::StatusOr<std::string> read = runtime::ReadText(path, kMaxLog);
    if (!read.ok()) return read.status();
    text = *std::move(read);
    const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole < text.size()) {
      text.resize(whole);
      std::error_code error;
      std::filesystem::resize_file(path, whole, error);
      if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
    }
  }
  log.file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log.file_ < 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (text.empty()) {
    if (absl::Status status = log.Write(PrintOrigin(origin)); !status.ok()) return status;
    return log;
  }
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    ++number;
    std::string fault;
    try {
      const json line = json::parse(text.substr(at, end - at));
      if (number == 1) {
        fault = CheckOrigin(line, origin);
      } else {
        log.samples_.push_back(ReadSample(line));
      }
    } catch (const json::exception&) {
      fault = "this is no sample: the file has been damaged";
    }
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ":1: ", fault));
    }
    at = end + 1;
  }
  return log;
}

absl::Status SampleLog::Write(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(file_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
    done += static_cast<size_t>(n);
  }
  if (fsync(file_) != 0) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status SampleLog::Append(const Sample& sample) {
  samples_.push_back(sample);
  return Write(PrintSample(sample));
}

}  // namespace l3c::tools::sweep
