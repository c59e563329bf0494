#include "runtime/arena.h"

#include <algorithm>
#include <new>

namespace l3c::runtime {
namespace {

constexpr size_t kAlign = 64;

}  // namespace

void Arena::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlign});
}

std::span<std::byte> Arena::Take(size_t size) {
  const size_t rounded = (size + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + rounded > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const size_t bytes = std::max(rounded, kChunk);
    Chunk chunk;
    chunk.memory.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kAlign})));
    chunk.size = bytes;
    chunks_.push_back(std::move(chunk));
    reserved_ += bytes;
    used_ = 0;
  }
  std::byte* piece = chunks_[chunk_].memory.get() + used_;
  used_ += rounded;
  return {piece, size};
}

void Arena::Reset() {
  // One piece in the place of many, so that the next round is served without a search.
  if (chunks_.size() > 1) {
    const size_t whole = reserved_;
    chunks_.clear();
    reserved_ = 0;
    chunk_ = 0;
    used_ = 0;
    Take(whole);
  }
  chunk_ = 0;
  used_ = 0;
}

}  // namespace l3c::runtime
