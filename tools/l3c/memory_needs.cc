#include "tools/l3c/memory_needs.h"

#include <cstdint>

#include "runtime/memory.h"
#include "tools/l3c/files.h"
#include "tools/l3c/progress.h"

namespace l3c::tools {

double BytesOf(const l0::Plan& plan) {
  double bytes = 0;  // a plan written by hand may pass what 64 bits hold
  for (const l0::Pool& pool : plan.pools) bytes += static_cast<double>(pool.size);
  return bytes;
}

std::string DescribeMemory(const l0::Plan& plan) {
  std::string text =
      "the plan takes " + WithThousands(static_cast<int64_t>(BytesOf(plan))) + " bytes of memory";
  const char* separator = ": ";
  for (const l0::Pool& pool : plan.pools) {
    text += separator + pool.name + " " + WithThousands(pool.size);
    separator = ", ";
  }
  return text + "; the machine has " + WithThousands(runtime::AvailableBytes()) + " available";
}

bool FitsThisMachine(const l0::Plan& plan, bool lowered) {
  const int64_t available = runtime::AvailableBytes();
  if (BytesOf(plan) <= static_cast<double>(available)) return true;
  double kept = 0;  // whatever is computed again
  for (const l0::Pool& pool : plan.pools) {
    const bool again = pool.kind == l0::PoolKind::kArena || pool.kind == l0::PoolKind::kExchange;
    if (!again) kept += static_cast<double>(pool.size);
  }
  if (kept > static_cast<double>(available)) {
    return EnvironmentError(DescribeMemory(plan),
                            "its state and its batches alone do not fit: take a smaller model or "
                            "batch, or a machine with more memory");
  }
  return EnvironmentError(
      DescribeMemory(plan),
      lowered ? "--memory " + std::to_string(available / 10 * 9 / 1'000'000) +
                    "MB has results computed again instead of kept; a smaller batch takes less"
              : "lower the program again, from L1 or above, with --memory");
}

}  // namespace l3c::tools
