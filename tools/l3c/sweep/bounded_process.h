// A child process that cannot take more time or memory than it was given.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace l3c::tools::sweep {

struct ProcessLimits {
  double seconds = 300;
  int64_t resident_bytes = 4'000'000'000;
};

struct ProcessResult {
  std::string failure;  // "" when it ended by itself with code 0; else why, in words
  std::string output;   // of standard output, at most kMaxOutput
  double seconds = 0;   // of the wall clock
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
};

// One child, from Start until Poll tells that it has ended. Its standard input is empty. Its
// standard error becomes the failure's last line. It is killed, with the processes that it started,
// when it passes a limit, on Kill, and when this process dies.
class BoundedProcess {
 public:
  static constexpr size_t kMaxOutput = size_t{64} << 20;

  BoundedProcess() = default;
  ~BoundedProcess();
  BoundedProcess(const BoundedProcess&) = delete;
  BoundedProcess& operator=(const BoundedProcess&) = delete;

  // `environment`: NAME=VALUE beside this process's own. False where none can be started.
  bool Start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const ProcessLimits& limits);
  // Looks at the child without waiting for it.
  std::optional<ProcessResult> Poll();
  void Kill(const std::string& why);
  bool running() const { return child_ > 0; }

 private:
  void ReadPipes();
  double Elapsed() const;

  pid_t child_ = -1;
  int out_ = -1;
  int err_ = -1;
  ProcessLimits limits_;
  double begun_ = 0;
  std::string killed_;  // why, where this process did it
  std::string output_;
  std::string errors_;
  int64_t peak_ = 0;
};

}  // namespace l3c::tools::sweep
