#include "tools/l3c/code_trial.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "layers/l0/kernel_trial.h"
#include "layers/l0/uop_interpreter.h"
#include "tools/l3c/edge_blocks.h"

namespace l3c::tools {
namespace {

constexpr size_t kMargin = 4096;               // bytes around each buffer
constexpr size_t kMaxBytes = size_t{1} << 30;  // of a set of buffers
constexpr double kMoment = 4e6;                // operations of the interpreter
constexpr int64_t kSingleBlocks = 16;          // computed one by one
constexpr unsigned kSeconds = 10;
constexpr size_t kPeriod = 1'000'003;  // elements of a large buffer that are drawn, a prime
constexpr double kCopied = 2e9;        // bytes that the interpreter sets aside, block by block

double Tolerance(l0::CodeClass how_near) {
  return how_near == l0::CodeClass::kExact ? 0 : how_near == l0::CodeClass::kReassoc ? 1e-5 : 1e-2;
}

// A kernel's buffers with margins, in memory that another process can write.
class SharedBuffers {
 public:
  explicit SharedBuffers(const l0::Kernel& kernel) {
    for (const l0::Param& param : kernel.params) {
      offsets_.push_back(size_ + kMargin);
      size_ += kMargin + (l0::BytesOf(param) + 63) / 64 * 64;
    }
    size_ += kMargin;
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<char*>(memory);
  }
  ~SharedBuffers() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }
  SharedBuffers(const SharedBuffers&) = delete;
  SharedBuffers& operator=(const SharedBuffers&) = delete;

  bool ok() const { return memory_ != nullptr; }
  char* at(size_t param) const { return memory_ + offsets_[param]; }
  char* memory() const { return memory_; }
  size_t size() const { return size_; }
  std::vector<void*> Pointers() const {
    std::vector<void*> pointers;
    for (size_t p = 0; p < offsets_.size(); ++p) pointers.push_back(at(p));
    return pointers;
  }

 private:
  std::vector<size_t> offsets_;
  size_t size_ = 0;
  char* memory_ = nullptr;
};

void Fill(const l0::Kernel& kernel, const SharedBuffers& buffers) {
  std::memset(buffers.memory(), 0x5a, buffers.size());
  std::mt19937_64 random(1);
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    l0::FillRandom(kernel.params[p], random, reinterpret_cast<std::byte*>(buffers.at(p)), kPeriod);
  }
}

// "" when the process came to its end, or what ended it.
template <typename Work>
std::string InAnotherProcess(Work work) {
  const pid_t child = fork();
  if (child < 0) return "no process could be started for it";
  if (child == 0) {
    alarm(kSeconds);
    work();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return "its process was lost";
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return absl::StrCat("it does not end within ", kSeconds, " s");
  }
  if (WIFSIGNALED(status)) {
    return absl::StrCat("it ends with signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                        ")");
  }
  return "it ends the process";
}

class Trial {
 public:
  Trial(const l0::Kernel& kernel, runtime::KernelFn code, l0::CodeClass how_near)
      : kernel_(kernel),
        code_(code),
        how_near_(how_near),
        wanted_(kernel),
        got_(kernel),
        again_(kernel) {}

  absl::Status Run() {
    if (!wanted_.ok() || !got_.ok() || !again_.ok()) {
      return absl::ResourceExhaustedError("there is no memory to try it in");
    }
    Fill(kernel_, wanted_);
    for (const SharedBuffers* buffers : {&got_, &again_}) {
      std::memcpy(buffers->memory(), wanted_.memory(), wanted_.size());
    }
    const std::vector<int64_t> blocks = Blocks();
    if (blocks.empty()) return absl::OkStatus();
    const bool all = static_cast<int64_t>(blocks.size()) == l0::NumBlocks(kernel_);
    const std::string fate = InAnotherProcess([&] {
      const auto call = [&](const SharedBuffers& buffers, int64_t first, int64_t last) {
        const std::vector<void*> pointers = buffers.Pointers();
        code_(pointers.data(), first, last);
      };
      if (all) {
        call(got_, 0, l0::NumBlocks(kernel_));
      } else {
        for (const int64_t block : blocks) call(got_, block, block + 1);
      }
      const int64_t pieces = std::min(kSingleBlocks, static_cast<int64_t>(blocks.size()));
      for (int64_t piece = pieces; all && piece-- > 0;) {
        const int64_t count = static_cast<int64_t>(blocks.size());
        call(again_, count * piece / pieces, count * (piece + 1) / pieces);
      }
    });
    if (!fate.empty()) return absl::OutOfRangeError(fate);
    if (all && std::memcmp(got_.memory(), again_.memory(), got_.size()) != 0) {
      return absl::InvalidArgumentError(
          "it gives other bits where its blocks are computed in other pieces");
    }
    if (compared_) {
      for (const int64_t block : blocks) {
        l0::Run(kernel_, wanted_.Pointers().data(), block, block + 1);
      }
    }
    if (absl::Status status = Margins(); !status.ok()) return status;
    for (size_t p = 0; p < kernel_.params.size(); ++p) {
      if (absl::Status status = Compare(p); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // All, or as many as the interpreter does in a moment.
  std::vector<int64_t> Blocks() {
    const l0::KernelWork work = l0::CountWork(kernel_);
    const double operations = 2 * work.multiply_adds + work.simple_flops + work.divides +
                              work.transcendentals + (work.bytes_read + work.bytes_written) / 4;
    const int64_t count = l0::NumBlocks(kernel_);
    int64_t some = count;
    if (operations > kMoment) {
      const double share = kMoment / operations * static_cast<double>(count);
      const double copies = kCopied / static_cast<double>(wanted_.size());
      some = std::max<int64_t>(1, static_cast<int64_t>(std::min(share, copies)));
      compared_ = operations / static_cast<double>(count) <= 10 * kMoment;
    }
    std::vector<int64_t> blocks;
    for (int64_t i = 0; i < some; ++i) blocks.push_back(i * count / some);
    if (some == count) return blocks;
    const std::vector<int64_t> edges = EdgeBlocks(kernel_);
    if (operations / static_cast<double>(count) * static_cast<double>(edges.size()) <=
        10 * kMoment) {
      blocks.insert(blocks.end(), edges.begin(), edges.end());
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    return blocks;
  }

  absl::Status Margins() const {
    const char* at = got_.memory();
    for (size_t p = 0; p <= kernel_.params.size(); ++p) {
      const char* end = p < kernel_.params.size() ? got_.at(p) : got_.memory() + got_.size();
      const char* changed = std::find_if(at, end, [](char c) { return c != 0x5a; });
      if (changed != end) {
        const bool before = p < kernel_.params.size() && (p == 0 || end - changed < 2048);
        return absl::OutOfRangeError(absl::StrCat("it writes ",
                                                  before ? "before" : "past the end of", " '",
                                                  kernel_.params[before ? p : p - 1].name, "'"));
      }
      if (p < kernel_.params.size()) at = end + l0::BytesOf(kernel_.params[p]);
    }
    return absl::OkStatus();
  }

  absl::Status Compare(size_t p) const {
    const l0::Param& param = kernel_.params[p];
    const size_t bytes = l0::BytesOf(param);
    if (bytes == 0 || std::memcmp(got_.at(p), wanted_.at(p), bytes) == 0) return absl::OkStatus();
    if (param.access == l0::Access::kIn) {
      return absl::OutOfRangeError(absl::StrCat("it writes '", param.name, "', which it may read"));
    }
    if (!compared_) return absl::OkStatus();
    const char* words = how_near_ == l0::CodeClass::kExact     ? "other bits"
                        : how_near_ == l0::CodeClass::kReassoc ? "more than 1e-5 beside it"
                                                               : "more than 1e-2 beside it";
    const auto other = [&](const std::string& how) {
      return absl::InvalidArgumentError(
          absl::StrCat("it computes another '", param.name, "' than the UOps: ", how));
    };
    if (how_near_ == l0::CodeClass::kExact || !tensor::IsFloat(param.dtype)) return other(words);
    const auto bytes_at = [p](const SharedBuffers& buffers) {
      return reinterpret_cast<const std::byte*>(buffers.at(p));
    };
    const l0::Gap gap = l0::GapBetween(param, bytes_at(wanted_), bytes_at(got_));
    if (gap.norm <= Tolerance(how_near_)) return absl::OkStatus();
    return other(words);
  }

  const l0::Kernel& kernel_;
  const runtime::KernelFn code_;
  const l0::CodeClass how_near_;
  const SharedBuffers wanted_, got_, again_;
  bool compared_ = true;
};

}  // namespace

absl::Status TryCode(const l0::Kernel& kernel, runtime::KernelFn code, l0::CodeClass how_near) {
  size_t bytes = 0;
  for (const l0::Param& param : kernel.params) bytes += l0::BytesOf(param);
  if (bytes > kMaxBytes) return absl::OkStatus();  // too much to try
  return Trial(kernel, code, how_near).Run();
}

}  // namespace l3c::tools
