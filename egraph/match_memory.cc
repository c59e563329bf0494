#include "egraph/match_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace l3c::egraph {
namespace {

constexpr size_t kFirstSlab = size_t{1} << 16;    // words: 256 KiB
constexpr size_t kLargestSlab = size_t{1} << 19;  // 2 MiB
constexpr size_t kBlock = size_t{1} << 14;        // 64 KiB

}  // namespace

void MatchMemory::AddSlab(size_t words) {
  const size_t bytes = words * sizeof(uint32_t);
  void* slab = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (slab == MAP_FAILED) throw std::bad_alloc();
  slabs_.push_back({static_cast<uint32_t*>(slab), words});
  used_ = 0;
}

MatchMemory::Block MatchMemory::Take(size_t words) {
  const std::lock_guard lock(mutex_);
  if (slabs_.empty() || slabs_.back().words - used_ < words) {
    AddSlab(std::max(slabs_.empty() ? kFirstSlab : kLargestSlab, words));
  }
  Slab& slab = slabs_.back();
  const size_t size = std::max(words, std::min(kBlock, slab.words - used_));
  uint32_t* begin = slab.values + used_;
  used_ += size;
  return {begin, begin + size};
}

void MatchMemory::Clear(size_t slabs) {
  for (; slabs_.size() > slabs; slabs_.pop_back()) {
    munmap(slabs_.back().values, slabs_.back().words * sizeof(uint32_t));
  }
  used_ = 0;
}

}  // namespace l3c::egraph
