// Memory for the matches of one search, which several threads find and which goes all at once.
//
// It comes from the kernel in slabs, not from the heap: a heap keeps what a thread has given back
// for that thread, where nothing else could use it and no budget would count it. Slabs stand in
// huge pages where there are any. Only the first one, which is small and stays, is of the heap:
// most searches need no more, and touching fresh pages would take longer than they do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace l3c::egraph {

class MatchMemory {
 public:
  MatchMemory() = default;
  ~MatchMemory() { Clear(0); }
  MatchMemory(const MatchMemory&) = delete;
  MatchMemory& operator=(const MatchMemory&) = delete;

  struct Block {
    uint32_t* begin = nullptr;
    uint32_t* end = nullptr;
  };
  // A block for the calling thread, of `words` values at least. There until Clear().
  Block Take(size_t words);
  // Takes all blocks back; the first slab stays.
  void Clear() { Clear(1); }

 private:
  struct Slab {
    uint32_t* values;
    size_t words;
  };
  void AddSlab(size_t words);
  void Clear(size_t slabs);

  std::mutex mutex_;
  std::vector<Slab> slabs_;
  size_t used_ = 0;  // words of the last slab
};

// The blocks of one thread, cut into arrays.
class MatchArena {
 public:
  explicit MatchArena(MatchMemory& memory) : memory_(memory) {}

  // `most` values, or fewer where fewer are left, but no less than `least`.
  std::span<uint32_t> Take(size_t least, size_t most) {
    if (static_cast<size_t>(block_.end - block_.begin) < least) block_ = memory_.Take(least);
    const size_t size = std::min(most, static_cast<size_t>(block_.end - block_.begin));
    return {std::exchange(block_.begin, block_.begin + size), size};
  }

 private:
  MatchMemory& memory_;
  MatchMemory::Block block_;
};

}  // namespace l3c::egraph
