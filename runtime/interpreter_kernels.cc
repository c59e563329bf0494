#include "runtime/interpreter_kernels.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "layers/l0/uop_interpreter.h"

namespace l3c::runtime {

// What a kernel's function finds behind its parameters.
struct InterpreterKernels::Entry {
  const l0::Kernel* kernel = nullptr;
  // The interpreter begins a call with a copy of the parameters that the kernel both reads and
  // writes, so calls of such a kernel must not overlap.
  bool updates = false;
  std::mutex updating;
};

namespace {

constexpr size_t kMaxParams = 256;

}  // namespace

InterpreterKernels::InterpreterKernels(const l0::Plan& plan) {
  for (const l0::Kernel& kernel : plan.kernels) {
    auto entry = std::make_unique<Entry>();
    entry->kernel = &kernel;
    entry->updates =
        std::any_of(kernel.params.begin(), kernel.params.end(),
                    [](const l0::Param& param) { return param.access == l0::Access::kInOut; });
    entries_.push_back(std::move(entry));
  }
}

InterpreterKernels::~InterpreterKernels() = default;

KernelFn InterpreterKernels::Find(l0::KernelId kernel) const {
  // The entry's place depends on the number of parameters: one function for each number.
  static constexpr auto kFunctions = []<size_t... kParams>(std::index_sequence<kParams...>) {
    return std::array<KernelFn, sizeof...(kParams)>{
        [](void* const* params, int64_t block_begin, int64_t block_end) {
          auto* entry = static_cast<Entry*>(params[kParams]);
          std::unique_lock lock(entry->updating, std::defer_lock);
          if (entry->updates) lock.lock();
          l0::Run(*entry->kernel, params, block_begin, block_end);
        }...};
  }(std::make_index_sequence<kMaxParams>());
  const size_t params = entries_[kernel]->kernel->params.size();
  return params < kMaxParams ? kFunctions[params] : nullptr;
}

void* InterpreterKernels::Context(l0::KernelId kernel) const { return entries_[kernel].get(); }

}  // namespace l3c::runtime
