#include "tests/backends/ptx/ptx_memory.h"

#include <cstring>
#include <utility>

namespace l3c::testing {
namespace {

// Nothing lies between the two accesses that would order them.
bool Unordered(const PtxAccessor& before, const PtxAccessor& now) {
  if (before.block < 0) return false;
  if (before.block != now.block) return true;
  return before.thread != now.thread && before.epoch == now.epoch;
}

std::string Describe(const PtxAccessor& who) {
  return "thread " + std::to_string(who.thread) + " of block " + std::to_string(who.block);
}

}  // namespace

void PtxMemory::Add(uint64_t address, std::byte* data, size_t bytes, bool written,
                    std::string name) {
  Region region{address, data, bytes, std::move(name), std::vector<Cell>(bytes)};
  for (Cell& cell : region.cells) cell.written = written;
  regions_[address] = std::move(region);
}

std::optional<std::string> PtxMemory::Find(uint64_t address, size_t size, Region** region) {
  auto found = regions_.upper_bound(address);
  if (found != regions_.begin()) {
    Region& candidate = std::prev(found)->second;
    const uint64_t offset = address - candidate.address;
    if (offset <= candidate.bytes && size <= candidate.bytes - offset) {
      if (address % size != 0) {
        return "a misaligned access of " + std::to_string(size) + " bytes at byte " +
               std::to_string(offset) + " of " + candidate.name;
      }
      *region = &candidate;
      return std::nullopt;
    }
    if (offset < candidate.bytes + (uint64_t{1} << 32)) {
      return "an access out of bounds: byte " + std::to_string(offset) + " of the " +
             std::to_string(candidate.bytes) + " of " + candidate.name;
    }
  }
  return "an access out of bounds, in front of all memory";
}

std::optional<std::string> PtxMemory::Read(uint64_t address, size_t size, const PtxAccessor& who,
                                           uint64_t* value) {
  Region* region = nullptr;
  if (auto fault = Find(address, size, &region)) return fault;
  const uint64_t offset = address - region->address;
  for (uint64_t byte = offset; byte < offset + size; ++byte) {
    Cell& cell = region->cells[byte];
    if (!cell.written) {
      return "reads byte " + std::to_string(byte) + " of " + region->name +
             ", which nothing has written";
    }
    if (Unordered(cell.writer, who)) {
      return "a race: reads byte " + std::to_string(byte) + " of " + region->name + ", which " +
             Describe(cell.writer) + " writes";
    }
    if (cell.reader.block >= 0 && cell.reader.block != who.block) cell.several_blocks = true;
    if (cell.reader.block == who.block && cell.reader.epoch == who.epoch) {
      cell.several_readers |= cell.reader.thread != who.thread;
    } else {
      cell.several_readers = false;
    }
    cell.reader = who;
  }
  *value = 0;
  std::memcpy(value, region->data + offset, size);
  return std::nullopt;
}

std::optional<std::string> PtxMemory::Write(uint64_t address, size_t size, const PtxAccessor& who,
                                            uint64_t value) {
  Region* region = nullptr;
  if (auto fault = Find(address, size, &region)) return fault;
  const uint64_t offset = address - region->address;
  for (uint64_t byte = offset; byte < offset + size; ++byte) {
    Cell& cell = region->cells[byte];
    if (Unordered(cell.writer, who)) {
      return "a race: writes byte " + std::to_string(byte) + " of " + region->name +
             ", and so does " + Describe(cell.writer);
    }
    const bool others =
        cell.several_readers && cell.reader.block == who.block && cell.reader.epoch == who.epoch;
    if (cell.several_blocks || others || Unordered(cell.reader, who)) {
      return "a race: writes byte " + std::to_string(byte) + " of " + region->name + ", which " +
             Describe(cell.reader) + " reads";
    }
    cell.writer = who;
    cell.written = true;
  }
  std::memcpy(region->data + offset, &value, size);
  return std::nullopt;
}

}  // namespace l3c::testing
