#include "runtime/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

// A control group's figure: a number, or "max".
int64_t ReadFigure(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value)) return std::numeric_limits<int64_t>::max();
  return value;
}

// Larger pools are worth huge pages: fewer TLB misses in a stride over a weight matrix.
constexpr size_t kHugePageThreshold = size_t{4} << 20;

}  // namespace

int64_t AvailableBytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t value = 0;
  while (file >> key >> value) {
    std::getline(file, unit);
    if (key == "MemAvailable:") available = value * 1024;
  }
  const int64_t limit = ReadFigure("/sys/fs/cgroup/memory.max");
  const int64_t used = ReadFigure("/sys/fs/cgroup/memory.current");
  if (limit != std::numeric_limits<int64_t>::max() && used != std::numeric_limits<int64_t>::max()) {
    available = std::min(available, std::max<int64_t>(0, limit - used));
  }
  return available;
}

absl::StatusOr<Memory> Memory::Allocate(const l0::Plan& plan) {
  double wanted = 0;
  for (const l0::Pool& pool : plan.pools) wanted += static_cast<double>(pool.size);
  const int64_t available = AvailableBytes();
  if (wanted > static_cast<double>(available)) {
    return absl::ResourceExhaustedError(
        Message("the plan's pools take ", static_cast<int64_t>(wanted),
                " bytes of memory and the machine has ", available, " available"));
  }
#ifdef __GLIBC__
  // What the search for the plan gave back goes on to the system: a large step's memory else comes
  // on top of it.
  malloc_trim(0);
#endif
  Memory memory;
  for (const l0::Pool& pool : plan.pools) {
    Mapping mapping;
    mapping.size = static_cast<size_t>(pool.size);
    if (mapping.size > 0) {
      void* base =
          mmap(nullptr, mapping.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (base == MAP_FAILED) {
        return absl::ResourceExhaustedError(
            Message("cannot allocate pool '", pool.name, "' of ", pool.size, " bytes"));
      }
      mapping.base = base;
      if (mapping.size >= kHugePageThreshold) madvise(base, mapping.size, MADV_HUGEPAGE);
    }
    memory.pools_.push_back(mapping);
  }
  for (const l0::Buffer& buffer : plan.buffers) {
    memory.addresses_.push_back(static_cast<std::byte*>(memory.pools_[buffer.pool].base) +
                                buffer.offset);
  }
  return memory;
}

Memory::Memory(Memory&& other) noexcept
    : pools_(std::exchange(other.pools_, {})), addresses_(std::move(other.addresses_)) {}

Memory::~Memory() {
  for (const Mapping& pool : pools_) {
    if (pool.base != nullptr) munmap(pool.base, pool.size);
  }
}

}  // namespace l3c::runtime
