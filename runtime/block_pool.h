// A fixed number of blocks of one size, taken and given back from any thread without a lock.
//
// The free blocks form a list whose head is one atomic word: the number of the first block and a
// count of the changes so far, so that a block that was taken and came back in between is not
// mistaken for one that never left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace l3c::runtime {

class BlockPool {
 public:
  // Throws std::bad_alloc. Memory is touched only where blocks are used.
  BlockPool(size_t block_bytes, uint32_t blocks);
  BlockPool(const BlockPool&) = delete;

  std::byte* Take();            // of 64-byte alignment and any content; null when none is free
  void Give(std::byte* block);  // one that Take returned
  size_t block_bytes() const { return block_bytes_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Free {
    void operator()(std::byte* memory) const;
  };

  const size_t block_bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
  std::unique_ptr<std::atomic<uint32_t>[]> next_;  // of each free block: the one behind it
  std::atomic<uint64_t> head_;                     // changes << 32 | block
};

}  // namespace l3c::runtime
