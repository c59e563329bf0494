#include "runtime/block_pool.h"

#include <new>

namespace l3c::runtime {
namespace {

constexpr size_t kBlockAlign = 64;

uint64_t Changed(uint64_t head, uint32_t block) { return ((head >> 32) + 1) << 32 | block; }

}  // namespace

void BlockPool::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{kBlockAlign});
}

BlockPool::BlockPool(size_t block_bytes, uint32_t blocks)
    : block_bytes_((block_bytes + kBlockAlign - 1) / kBlockAlign * kBlockAlign),
      memory_(static_cast<std::byte*>(
          ::operator new[](block_bytes_* blocks, std::align_val_t{kBlockAlign}))),
      next_(new std::atomic<uint32_t>[blocks]) {
  for (uint32_t block = 0; block < blocks; ++block) {
    next_[block].store(block + 1 < blocks ? block + 1 : kNone, std::memory_order_relaxed);
  }
  head_.store(blocks > 0 ? 0 : kNone);
}

std::byte* BlockPool::Take() {
  uint64_t head = head_.load(std::memory_order_acquire);
  for (;;) {
    const auto block = static_cast<uint32_t>(head);
    if (block == kNone) return nullptr;
    // Another thread may take the block meanwhile, and write here: then the head has changed.
    const uint32_t next = next_[block].load(std::memory_order_relaxed);
    if (head_.compare_exchange_weak(head, Changed(head, next), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return memory_.get() + size_t{block} * block_bytes_;
    }
  }
}

void BlockPool::Give(std::byte* given) {
  const auto block =
      static_cast<uint32_t>(static_cast<size_t>(given - memory_.get()) / block_bytes_);
  uint64_t head = head_.load(std::memory_order_relaxed);
  do {
    next_[block].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
  } while (!head_.compare_exchange_weak(head, Changed(head, block), std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
}

}  // namespace l3c::runtime
