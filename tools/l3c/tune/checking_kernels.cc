#include "tools/l3c/tune/checking_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "layers/l0/kernel_trial.h"
#include "layers/l0/uop_interpreter.h"
#include "tools/l3c/edge_blocks.h"

namespace l3c::tools::tune {
namespace {

constexpr double kOperations = 3e7;  // of the interpreter, for a kernel
constexpr int64_t kInside = 61;      // points beside those at the ends, at most
constexpr double kBytes = 2e9;       // of copies of a kernel's operands
constexpr size_t kMaxParams = 256;

using Buffer = std::vector<std::byte>;

double OperationsOf(const l0::Kernel& kernel) {
  const l0::KernelWork work = l0::CountWork(kernel);
  return 2 * work.multiply_adds + work.simple_flops + work.divides + work.transcendentals +
         (work.bytes_read + work.bytes_written) / 4;
}

// How far what the code gave lies from the interpreter's f64, over the elements that it wrote.
struct Gap {
  double norm = 0;
  double code = 0;
  double f32 = 0;
};

template <typename T>
Gap GapOf(const Buffer& before, const Buffer& narrow, const Buffer& wide, const std::byte* got) {
  Gap gap;
  for (size_t at = 0; at + sizeof(T) <= wide.size(); at += sizeof(T)) {
    if (std::memcmp(&before[at], &wide[at], sizeof(T)) == 0) continue;
    T w, n, g;
    std::memcpy(&w, &wide[at], sizeof w);
    std::memcpy(&n, &narrow[at], sizeof n);
    std::memcpy(&g, got + at, sizeof g);
    if (std::isnan(w) && std::isnan(g)) continue;
    const auto square = [](T a, T b) {
      const double d = static_cast<double>(a) - static_cast<double>(b);
      return a == b ? 0 : d * d;
    };
    gap.code += square(g, w);
    gap.f32 += square(n, w);
    if (std::isfinite(w)) gap.norm += static_cast<double>(w) * static_cast<double>(w);
  }
  return gap;
}

// A block of it is one point along every grid axis, so that the interpreter may compute a few. Not
// where a store adds up over what a block holds.
l0::Kernel Refined(l0::Kernel kernel) {
  const bool adds = std::any_of(kernel.uops.begin(), kernel.uops.end(),
                                [](const l0::Uop& uop) { return uop.accumulate; });
  for (l0::Axis& axis : kernel.axes) {
    if (!adds && axis.kind == l0::AxisKind::kGrid) axis.block = 1;
  }
  return kernel;
}

// Of the refined kernel; none where those at the ends alone are too much.
std::vector<int64_t> BlocksToCompare(const l0::Kernel& kernel) {
  const int64_t count = l0::NumBlocks(kernel);
  double bytes = 0, set_aside = 1;
  for (const l0::Param& param : kernel.params) {
    bytes += static_cast<double>(BytesOf(param));
    if (param.access == l0::Access::kInOut) set_aside += static_cast<double>(BytesOf(param));
  }
  // Each block is interpreted twice, and sets aside what the kernel both reads and writes.
  const double each = OperationsOf(kernel) / static_cast<double>(std::max<int64_t>(1, count));
  const double most = std::min(kOperations / std::max(1.0, each), kBytes / set_aside);
  std::vector<int64_t> blocks = EdgeBlocks(kernel);
  if (static_cast<double>(blocks.size()) > most || 3 * bytes > kBytes) return {};
  const int64_t inside =
      std::min({kInside, count, static_cast<int64_t>(most) - static_cast<int64_t>(blocks.size())});
  for (int64_t i = 0; i < inside; ++i) blocks.push_back((2 * i + 1) * count / (2 * inside));
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

}  // namespace

struct CheckingKernels::Entry {
  const l0::Kernel* kernel = nullptr;
  l0::Kernel refined;
  runtime::KernelFn code = nullptr;
  void* context = nullptr;
  double tolerance = 0;
  int64_t calls = 0;            // so far
  std::vector<int64_t> wanted;  // refined blocks that are still to be compared; none: it is skipped
  std::string fault;

  void Call(void* const* params, int64_t begin, int64_t end);
  void Compare(void* const* params, const std::vector<Buffer>& before);
  void Interpret(bool widen, std::vector<Buffer>& buffers) const;
};

CheckingKernels::CheckingKernels(const l0::Plan& plan, const runtime::KernelTable& kernels,
                                 double tolerance, const std::vector<bool>& skip) {
  for (l0::KernelId id = 0; id < plan.kernels.size(); ++id) {
    const l0::Kernel& kernel = plan.kernels[id];
    auto entry = std::make_unique<Entry>();
    entry->kernel = &kernel;
    entry->code = kernels.Find(id);
    entry->context = kernels.Context(id);
    entry->tolerance = tolerance;
    if (!skip[id]) {
      entry->refined = Refined(kernel);
      entry->wanted = BlocksToCompare(entry->refined);
      if (entry->wanted.empty()) entry->fault = "it is too large for the interpreter";
    }
    entries_.push_back(std::move(entry));
  }
}

CheckingKernels::~CheckingKernels() = default;

runtime::KernelFn CheckingKernels::Find(l0::KernelId kernel) const {
  // The entry's place depends on the number of parameters: one function for each number.
  static constexpr auto kFunctions = []<size_t... kParams>(std::index_sequence<kParams...>) {
    return std::array<runtime::KernelFn, sizeof...(kParams)>{
        [](void* const* params, int64_t begin, int64_t end) {
          static_cast<Entry*>(params[kParams])->Call(params, begin, end);
        }...};
  }(std::make_index_sequence<kMaxParams>());
  const size_t params = entries_[kernel]->kernel->params.size();
  return params < kMaxParams ? kFunctions[params] : nullptr;
}

void* CheckingKernels::Context(l0::KernelId kernel) const { return entries_[kernel].get(); }

bool CheckingKernels::Compared(l0::KernelId kernel) const {
  return entries_[kernel]->wanted.empty();
}

std::string CheckingKernels::Fault() const {
  for (const auto& entry : entries_) {
    if (!entry->fault.empty()) return "kernel '" + entry->kernel->name + "': " + entry->fault;
  }
  return "";
}

void CheckingKernels::Entry::Call(void* const* params, int64_t begin, int64_t end) {
  std::vector<void*> own(params, params + kernel->params.size());
  own.push_back(context);
  const bool whole = begin == 0 && end == l0::NumBlocks(*kernel);
  const bool look = ++calls >= 2 && whole && !wanted.empty();
  std::vector<Buffer> before;
  for (size_t p = 0; look && p < kernel->params.size(); ++p) {
    const auto* bytes = static_cast<const std::byte*>(params[p]);
    before.emplace_back(bytes, bytes + BytesOf(kernel->params[p]));
  }
  code(own.data(), begin, end);
  if (!look) return;
  Compare(params, before);
  wanted.clear();
}

void CheckingKernels::Entry::Interpret(bool widen, std::vector<Buffer>& buffers) const {
  std::vector<void*> pointers;
  for (Buffer& buffer : buffers) pointers.push_back(buffer.data());
  for (int64_t block : wanted) l0::Run(refined, pointers.data(), block, block + 1, {widen});
}

void CheckingKernels::Entry::Compare(void* const* params, const std::vector<Buffer>& before) {
  std::vector<Buffer> narrow = before, wide = before;
  Interpret(false, narrow);
  Interpret(true, wide);
  for (size_t p = 0; p < kernel->params.size(); ++p) {
    const l0::Param& param = kernel->params[p];
    const auto* got = static_cast<const std::byte*>(params[p]);
    if (param.access == l0::Access::kIn) continue;
    Gap gap;
    if (param.dtype == tensor::DType::kF32) {
      gap = GapOf<float>(before[p], narrow[p], wide[p], got);
    } else if (param.dtype == tensor::DType::kF64) {
      gap = GapOf<double>(before[p], narrow[p], wide[p], got);
    } else {
      // Whole numbers are the same, but where the two precisions round them apart.
      for (size_t at = 0; at < wide[p].size(); ++at) {
        if (wide[p][at] == narrow[p][at] && wide[p][at] != before[p][at] &&
            wide[p][at] != got[at]) {
          gap.code = 1;
        }
      }
    }
    // Not `>`: where the code gave no number, the gap is none either.
    if (gap.code <= std::max(tolerance * tolerance * gap.norm, 16 * gap.f32)) continue;
    if (fault.empty()) fault = "it computes another '" + param.name + "' than its UOps";
  }
}

}  // namespace l3c::tools::tune
