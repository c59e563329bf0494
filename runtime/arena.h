// Scratch memory that is taken piece by piece and given back all at once. It keeps what it has
// grown to, so work that repeats soon allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace l3c::runtime {

class Arena {
 public:
  // Of any content, aligned to 64 bytes; until the next Reset. Throws std::bad_alloc.
  std::span<std::byte> Take(size_t size);
  void Reset();

  size_t reserved() const { return reserved_; }  // bytes held

 private:
  static constexpr size_t kChunk = size_t{1} << 20;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte[], Free> memory;
    size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;  // the one that pieces are taken from
  size_t used_ = 0;   // of it
  size_t reserved_ = 0;
};

}  // namespace l3c::runtime
