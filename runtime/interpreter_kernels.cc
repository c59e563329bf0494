#include "runtime/interpreter_kernels.h"

#include <array>
#include <utility>

#include "layers/l0/uop_interpreter.h"

namespace l3c::runtime {
namespace {

// The kernel stands behind the parameters, so its place depends on their number: one function for
// each number, made by the template.
template <size_t kParams>
void RunInterpreter(void* const* params, int64_t block_begin, int64_t block_end) {
  l0::Run(*static_cast<const l0::Kernel*>(params[kParams]), params, block_begin, block_end);
}

constexpr size_t kMaxParams = 256;

template <size_t... kParams>
constexpr std::array<KernelFn, sizeof...(kParams)> Functions(std::index_sequence<kParams...>) {
  return {RunInterpreter<kParams>...};
}
constexpr auto kFunctions = Functions(std::make_index_sequence<kMaxParams>());

}  // namespace

KernelFn InterpreterKernels::Find(l0::KernelId kernel) const {
  const size_t params = plan_.kernels[kernel].params.size();
  return params < kMaxParams ? kFunctions[params] : nullptr;
}

void* InterpreterKernels::Context(l0::KernelId kernel) const {
  return const_cast<l0::Kernel*>(&plan_.kernels[kernel]);
}

}  // namespace l3c::runtime
