#include "tools/l3c/sweep/bounded_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>

extern char** environ;

namespace l3c::tools::sweep {
namespace {

constexpr size_t kErrorsKept = size_t{64} << 10;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t ResidentBytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  int64_t size = 0, resident = 0;
  if (!(file >> size >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

// The first error that the child told, else its last line.
std::string Told(const std::string& errors) {
  std::string last;
  size_t at = 0;
  while (at < errors.size()) {
    const size_t end = std::min(errors.find('\n', at), errors.size());
    const std::string line = errors.substr(at, end - at);
    at = end + 1;
    if (line.find("error") != std::string::npos) return line.substr(0, 300);
    if (!line.empty()) last = line;
  }
  return last.substr(0, 300);
}

// In the child, between fork and exec: nothing here allocates.
[[noreturn]] void Become(char* const* arguments, char* const* environment, int out, int err,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that was set
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (int signal : {SIGINT, SIGTERM, SIGPIPE}) std::signal(signal, SIG_DFL);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

}  // namespace

BoundedProcess::~BoundedProcess() {
  if (!running()) return;
  Kill("");
  waitpid(child_, nullptr, 0);
  close(out_);
  close(err_);
}

bool BoundedProcess::Start(const std::vector<std::string>& command,
                           const std::vector<std::string>& environment,
                           const ProcessLimits& limits) {
  limits_ = limits;
  killed_.clear();
  output_.clear();
  errors_.clear();
  peak_ = 0;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool replaced =
        std::any_of(environment.begin(), environment.end(), [&](const std::string& given) {
          return std::strncmp(*variable, given.c_str(), given.find('=') + 1) == 0;
        });
    if (!replaced) variables.push_back(*variable);
  }
  for (const std::string& given : environment)
    variables.push_back(const_cast<char*>(given.c_str()));
  variables.push_back(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return false;
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return false;
  }
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) Become(arguments.data(), variables.data(), out[1], err[1], parent);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
  if (child_ < 0) {
    close(out_);
    close(err_);
    return false;
  }
  setpgid(child_, child_);  // whoever of the two comes first
  fcntl(out_, F_SETFL, O_NONBLOCK);
  fcntl(err_, F_SETFL, O_NONBLOCK);
  begun_ = Now();
  return true;
}

double BoundedProcess::Elapsed() const { return Now() - begun_; }

void BoundedProcess::ReadPipes() {
  char block[65536];
  const auto drain = [&](int pipe, std::string& to, size_t most) {
    for (ssize_t n = read(pipe, block, sizeof block); n > 0; n = read(pipe, block, sizeof block)) {
      to.append(block, std::min(static_cast<size_t>(n), most - std::min(most, to.size())));
    }
  };
  drain(out_, output_, kMaxOutput);
  drain(err_, errors_, kErrorsKept);
}

void BoundedProcess::Kill(const std::string& why) {
  if (!running()) return;
  if (killed_.empty()) killed_ = why;
  kill(-child_, SIGKILL);
  kill(child_, SIGKILL);
}

std::optional<ProcessResult> BoundedProcess::Poll() {
  if (!running()) return std::nullopt;
  ReadPipes();
  siginfo_t state{};
  // It keeps its number until what it has started, and not waited for, is gone too.
  const int waited = waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT);
  if ((waited == 0 && state.si_pid == 0) || (waited < 0 && errno == EINTR)) {
    const int64_t resident = ResidentBytes(child_);
    peak_ = std::max(peak_, resident);
    if (resident > limits_.resident_bytes) {
      Kill("memory: it passed " + std::to_string(limits_.resident_bytes) + " resident bytes");
    } else if (Elapsed() > limits_.seconds) {
      Kill("time: it took more than " + std::to_string(static_cast<int64_t>(limits_.seconds)) +
           " s");
    }
    return std::nullopt;
  }
  ReadPipes();
  close(out_);
  close(err_);
  kill(-child_, SIGKILL);
  int status = 0;
  rusage usage{};
  const pid_t ended = wait4(child_, &status, 0, &usage);
  child_ = -1;
  ProcessResult result;
  result.seconds = Elapsed();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  result.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result.peak_rss_bytes = std::max(peak_, static_cast<int64_t>(usage.ru_maxrss) * 1024);
  result.output = std::move(output_);
  const std::string told = Told(errors_);
  if (!killed_.empty()) {
    result.failure = killed_;
  } else if (ended < 0) {
    result.failure = "crash: its process was lost";
  } else if (WIFSIGNALED(status)) {
    result.failure = std::string("crash: signal ") + std::to_string(WTERMSIG(status)) + " (" +
                     strsignal(WTERMSIG(status)) + ")";
  } else if (WEXITSTATUS(status) != 0) {
    result.failure = "exit code " + std::to_string(WEXITSTATUS(status)) + ": " +
                     (told.empty() ? "it said nothing" : told);
  } else if (result.output.size() >= kMaxOutput) {
    result.failure = "its output has more than " + std::to_string(kMaxOutput) + " bytes";
  }
  return result;
}

}  // namespace l3c::tools::sweep
