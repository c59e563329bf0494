#include "egraph/pages.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace l3c::egraph {
namespace {

std::atomic<bool> huge_pages = true;

void Wish(void* block, size_t bytes) {
  if (bytes < kHugePage || !huge_pages.load(std::memory_order_relaxed)) return;
  madvise(block, bytes, MADV_HUGEPAGE);  // the pages work without it
}

// `bytes` of address space that begin with a huge page, in which nothing stands yet.
std::byte* ReserveAligned(size_t bytes) {
  void* block = mmap(nullptr, bytes + kHugePage, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(block);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  return begin + before;
}

size_t WholePages(size_t bytes) {
  constexpr size_t kPage = size_t{1} << 12;
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

void WishForHugePages(bool wish) { huge_pages.store(wish, std::memory_order_relaxed); }

void* MapPages(size_t bytes) {
  if (bytes < kHugePage) {
    void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    return block;
  }
  bytes = WholePages(bytes);
  std::byte* block = ReserveAligned(bytes);
  if (mprotect(block, bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(block, bytes);
    throw std::bad_alloc();
  }
  Wish(block, bytes);
  return block;
}

void* RemapPages(void* block, size_t old_bytes, size_t bytes) {
  int flags = MREMAP_MAYMOVE;
  void* place = nullptr;
  if (bytes >= kHugePage && bytes > old_bytes) {
    // Huge pages move as such only to where one may begin.
    bytes = WholePages(bytes);
    place = ReserveAligned(bytes);
    flags |= MREMAP_FIXED;
  }
  void* moved = mremap(block, WholePages(old_bytes), bytes, flags, place);
  if (moved != MAP_FAILED) return moved;
  if (place != nullptr) munmap(place, bytes);
  throw std::bad_alloc();
}

void UnmapPages(void* block, size_t bytes) { munmap(block, bytes); }

}  // namespace l3c::egraph
