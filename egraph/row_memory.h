// Memory for the rows of large tables: blocks of the same size stand side by side in huge pages.
//
// All graphs of the process share it, so that what is taken beyond the blocks is less than one huge
// page for each size of block and not for each table. A huge page without blocks goes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace l3c::egraph {

class RowSlab;

// A block of `words` values, from the heap or from a slab.
struct RowBlockDeleter {
  RowSlab* slab = nullptr;  // null: the heap
  void operator()(uint32_t* block) const;
};
using RowBlock = std::unique_ptr<uint32_t[], RowBlockDeleter>;

// Its values are whatever they are.
RowBlock MakeRowBlock(size_t words);
// The same from a slab, unless it is too large for one.
RowBlock MakeRowBlockInSlab(size_t words);

}  // namespace l3c::egraph
