#include "runtime/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

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

constexpr size_t kPage = 4 << 10;
constexpr size_t kHugePage = 2 << 20;
// From here on huge pages take at most twice as much.
constexpr size_t kHugePageThreshold = 1 << 20;

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

#ifdef __GLIBC__
bool IsTraced() {
  std::ifstream file("/proc/self/status");
  for (std::string key; file >> key;) {
    int64_t value = 0;
    if (key == "TracerPid:") return file >> value && value != 0;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return false;
}

// Pages of the program's file that nothing can have written to leave the process; what is needed of
// them again comes back from the system's cache of files.
int ReleaseProgram(dl_phdr_info* info, size_t, void*) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = (info->dlpi_addr + part.p_vaddr) / page * page;
    const uintptr_t end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 1;  // the program comes first; its libraries stay
}
#endif

// What the search for the plan and the compiler of its kernels took and are done with: a large
// step's memory else comes on top of it.
void ReleaseUnused() {
#ifdef __GLIBC__
  malloc_trim(0);
  // A debugger writes to pages of code.
  if (!IsTraced()) dl_iterate_phdr(ReleaseProgram, nullptr);
#endif
}

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
  ReleaseUnused();
  size_t size = 0;
  std::vector<size_t> offsets;
  for (const l0::Pool& pool : plan.pools) {
    offsets.push_back(size);
    size += RoundUp(static_cast<size_t>(pool.size), kPage);
  }
  Memory memory;
  std::byte* base = nullptr;
  if (size > 0) {
    const bool huge = size >= kHugePageThreshold;
    if (huge) size = RoundUp(size, kHugePage);
    // Room to begin with a huge page; what is never touched takes no memory.
    memory.size_ = huge ? size + kHugePage : size;
    void* mapped =
        mmap(nullptr, memory.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          Message("cannot allocate the plan's pools of ", size, " bytes"));
    }
    memory.mapped_ = mapped;
    base = static_cast<std::byte*>(mapped);
    if (huge) {
      base +=
          RoundUp(reinterpret_cast<uintptr_t>(base), kHugePage) - reinterpret_cast<uintptr_t>(base);
      madvise(base, size, MADV_HUGEPAGE);
    }
  }
  for (const l0::Buffer& buffer : plan.buffers) {
    memory.addresses_.push_back(base + offsets[buffer.pool] + buffer.offset);
  }
  return memory;
}

Memory::Memory(Memory&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      size_(other.size_),
      addresses_(std::move(other.addresses_)) {}

Memory::~Memory() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

}  // namespace l3c::runtime
