#include "runtime/region_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "runtime/message.h"

namespace l3c::runtime {
namespace {

bool HoldsWords(const l0::Region& region) {
  return region.access == l0::RegionAccess::kReadOnly ||
         region.access == l0::RegionAccess::kReadWrite;
}

// Each region has cache lines of its own: the unit writes some while the host reads others.
size_t Rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
constexpr size_t kLine = 64;

}  // namespace

absl::StatusOr<RegionMemory> RegionMemory::Make(const l0::ControlUnit& unit, const Words& given,
                                                std::atomic<int64_t>& signals) {
  static_assert(sizeof(signals) == sizeof(int64_t));
  RegionMemory memory(unit);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t sizes[2] = {};  // read-only, read-write
  std::vector<size_t> offsets(unit.regions.size());
  for (size_t r = 0; r < unit.regions.size(); ++r) {
    const l0::Region& region = unit.regions[r];
    if (!HoldsWords(region) || l0::IsSignals(region)) continue;
    size_t& size = sizes[region.access == l0::RegionAccess::kReadWrite ? 1 : 0];
    offsets[r] = size;
    size += Rounded(static_cast<size_t>(region.size), kLine);
  }
  const size_t writable = Rounded(sizes[0], page);
  memory.size_ = writable + Rounded(sizes[1], page);
  if (memory.size_ > 0) {
    void* base =
        mmap(nullptr, memory.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      memory.size_ = 0;
      return absl::ResourceExhaustedError(
          Message("control unit '", unit.name, "': no memory for its regions"));
    }
    memory.base_ = static_cast<std::byte*>(base);
  }
  for (size_t r = 0; r < unit.regions.size(); ++r) {
    const l0::Region& region = unit.regions[r];
    memory.bytes_.emplace_back();
    if (l0::IsSignals(region)) {
      memory.bytes_.back() = std::as_writable_bytes(std::span(&signals, 1));
    } else if (HoldsWords(region)) {
      const bool writes = region.access == l0::RegionAccess::kReadWrite;
      std::vector<int64_t> words = l0::InitialWords(region);
      const auto found = given.find(region.name);
      if (writes && found != given.end()) {
        if (found->second.size() != words.size()) {
          return absl::FailedPreconditionError(Message("the checkpoint's region '", region.name,
                                                       "' has another size than the plan's"));
        }
        words = found->second;
      }
      std::byte* at = memory.base_ + offsets[r] + (writes ? writable : 0);
      std::memcpy(at, words.data(), words.size() * sizeof(int64_t));
      memory.bytes_.back() = {at, words.size() * sizeof(int64_t)};
    }
  }
  if (writable > 0 && mprotect(memory.base_, writable, PROT_READ) != 0) {
    return absl::InternalError("the regions that are only read cannot be protected");
  }
  return memory;
}

RegionMemory::RegionMemory(RegionMemory&& other) noexcept
    : unit_(other.unit_),
      base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      bytes_(std::move(other.bytes_)) {}

RegionMemory::~RegionMemory() {
  if (size_ > 0) munmap(base_, size_);
}

RegionMemory::Words RegionMemory::Snapshot() const {
  Words words;
  for (size_t r = 0; r < bytes_.size(); ++r) {
    const l0::Region& region = unit_->regions[r];
    if (region.access != l0::RegionAccess::kReadWrite) continue;
    std::vector<int64_t>& copy = words[region.name];
    auto* from = reinterpret_cast<int64_t*>(bytes_[r].data());
    for (size_t w = 0; w < bytes_[r].size() / sizeof(int64_t); ++w) {
      copy.push_back(std::atomic_ref<int64_t>(from[w]).load(std::memory_order_relaxed));
    }
  }
  return words;
}

}  // namespace l3c::runtime
