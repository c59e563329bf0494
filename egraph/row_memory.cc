#include "egraph/row_memory.h"

#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "egraph/pages.h"

namespace l3c::egraph {
namespace {

// Larger blocks would leave much of a huge page unused; a bit a block has to do for smaller ones.
constexpr size_t kLargest = kHugePage / 8;
constexpr size_t kSmallest = kHugePage / 64;

}  // namespace

class RowSlab {
 public:
  // The slabs with blocks of one size.
  struct Family {
    size_t bytes = 0;  // of a block
    size_t slabs = 0;
    std::vector<RowSlab*> open;  // with a free block; there is room for all
  };

  static RowBlock Take(size_t bytes) {
    const std::lock_guard lock(Mutex());
    Family& family = Families()[bytes];
    family.bytes = bytes;
    if (family.open.empty()) {
      family.open.reserve(family.slabs + 1);
      family.open.push_back(new RowSlab(&family));
      ++family.slabs;
    }
    RowSlab* slab = family.open.back();
    const int block = std::countr_zero(slab->free_);
    slab->free_ &= slab->free_ - 1;
    if (slab->free_ == 0) family.open.pop_back();
    return RowBlock(reinterpret_cast<uint32_t*>(slab->pages_ + static_cast<size_t>(block) * bytes),
                    RowBlockDeleter{slab});
  }

  void Give(uint32_t* block) {
    const std::lock_guard lock(Mutex());
    const size_t offset = static_cast<size_t>(reinterpret_cast<std::byte*>(block) - pages_);
    if (free_ == 0) {
      place_ = family_->open.size();
      family_->open.push_back(this);
    }
    free_ |= uint64_t{1} << (offset / family_->bytes);
    if (free_ != AllOf(family_->bytes)) return;
    std::vector<RowSlab*>& open = family_->open;
    open[place_] = open.back();
    open[place_]->place_ = place_;
    open.pop_back();
    --family_->slabs;
    delete this;
  }

 private:
  explicit RowSlab(Family* family)
      : family_(family),
        pages_(static_cast<std::byte*>(MapPages(kHugePage))),
        free_(AllOf(family->bytes)) {}
  ~RowSlab() { UnmapPages(pages_, kHugePage); }

  static uint64_t AllOf(size_t bytes) {
    const size_t blocks = kHugePage / bytes;
    return blocks == 64 ? ~uint64_t{0} : (uint64_t{1} << blocks) - 1;
  }
  // Neither is ever destroyed: tables may outlive what was made before them.
  static std::mutex& Mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
  }
  static std::map<size_t, Family>& Families() {
    static auto& families = *new std::map<size_t, Family>;
    return families;
  }

  Family* family_;
  std::byte* pages_;
  uint64_t free_;     // bit by block
  size_t place_ = 0;  // among the open ones of the family
};

void RowBlockDeleter::operator()(uint32_t* block) const {
  if (slab == nullptr) {
    delete[] block;
  } else {
    slab->Give(block);
  }
}

RowBlock MakeRowBlock(size_t words) { return RowBlock(new uint32_t[words]); }

RowBlock MakeRowBlockInSlab(size_t words) {
  const size_t bytes = words * sizeof(uint32_t);
  return bytes < kSmallest || bytes > kLargest ? MakeRowBlock(words) : RowSlab::Take(bytes);
}

}  // namespace l3c::egraph
