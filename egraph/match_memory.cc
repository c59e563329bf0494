#include "egraph/match_memory.h"

#include <algorithm>

#include "egraph/pages.h"

namespace l3c::egraph {
namespace {

// In words.
constexpr size_t kBlock = size_t{1} << 14;  // 64 KiB
constexpr size_t kFirstSlab = kBlock;
constexpr size_t kSlab = kHugePage / sizeof(uint32_t);

}  // namespace

void MatchMemory::AddSlab(size_t words) {
  slabs_.reserve(slabs_.size() + 1);
  uint32_t* values = slabs_.empty() ? new uint32_t[words]
                                    : static_cast<uint32_t*>(MapPages(words * sizeof(uint32_t)));
  slabs_.push_back({values, words});
  used_ = 0;
}

MatchMemory::Block MatchMemory::Take(size_t words) {
  const std::lock_guard lock(mutex_);
  if (slabs_.empty() || slabs_.back().words - used_ < words) {
    AddSlab(std::max(slabs_.empty() ? kFirstSlab : kSlab, words));
  }
  Slab& slab = slabs_.back();
  const size_t size = std::max(words, std::min(kBlock, slab.words - used_));
  uint32_t* begin = slab.values + used_;
  used_ += size;
  return {begin, begin + size};
}

void MatchMemory::Clear(size_t slabs) {
  for (; slabs_.size() > slabs; slabs_.pop_back()) {
    if (slabs_.size() == 1) {
      delete[] slabs_.back().values;
    } else {
      UnmapPages(slabs_.back().values, slabs_.back().words * sizeof(uint32_t));
    }
  }
  used_ = 0;
}

}  // namespace l3c::egraph
