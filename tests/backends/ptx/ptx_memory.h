// Memory that remembers who touched it: finds races, reads of what was never written, and accesses
// that do not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace l3c::testing {

// Who accesses: barriers order the threads of a block, nothing orders blocks.
struct PtxAccessor {
  int64_t block = 0;
  int64_t thread = 0;
  int64_t epoch = 0;  // barriers that the thread has passed
};

class PtxMemory {
 public:
  // A region at `address`; its bytes stay where they are.
  void Add(uint64_t address, std::byte* data, size_t bytes, bool written, std::string name);
  // Each returns what is wrong with it.
  std::optional<std::string> Read(uint64_t address, size_t size, const PtxAccessor& who,
                                  uint64_t* value);
  std::optional<std::string> Write(uint64_t address, size_t size, const PtxAccessor& who,
                                   uint64_t value);

 private:
  struct Cell {
    PtxAccessor writer{-1, -1, -1};
    PtxAccessor reader{-1, -1, -1};
    bool several_readers = false;  // threads, in the reader's block and epoch
    bool several_blocks = false;   // have read it
    bool written = false;
  };
  struct Region {
    uint64_t address = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;
    std::string name;
    std::vector<Cell> cells;
  };
  std::optional<std::string> Find(uint64_t address, size_t size, Region** region);

  std::map<uint64_t, Region> regions_;  // by address
};

}  // namespace l3c::testing
