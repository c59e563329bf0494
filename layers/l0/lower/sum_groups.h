// Which sums one kernel can make while it walks the rows of a tensor once.
//
// A layer norm's backward pass reads the same rows for the gradient of its input (a row at a time),
// for those of its gain and offset (sums over the rows) and, where the loss is made of its output,
// for the loss (a figure a row). Each by itself is a kernel that reads all rows again. Candidates
// of the kind kSums (candidates.h) make them together: sums over the rows are added up in memory,
// row after row, at the place of their column; they start at zero and nothing else in the kernel
// reads them. Sums that keep no axis but the columns have no parallel axis, so they are first made
// in parts (rewrites/algebra.egg, sum-in-parts).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

enum class WalkKind : uint8_t {
  kColumns,   // a sum over outer axes: the last one is kept, and one to share among workers
  kRow,       // a reduction over the last axis
  kElements,  // elementwise
};

// What is known of a value that a walk can make, from the kernel that makes it alone.
struct WalkPart {
  ValueId value = -1;
  WalkKind kind = WalkKind::kElements;
  uint32_t definition = 0;    // of that kind
  int64_t points = 0;         // that are walked
  std::vector<ValueId> met;   // everything that the kernel could compute or load, ascending
  std::vector<ValueId> wide;  // of it what it could load and has as many elements, ascending
};

// Nothing where v is of no such kind. `loop` is the candidate with the root v.
std::optional<WalkPart> DescribePart(const ValueTable& table, const Candidate& loop, ValueId v);

// Whether both can be made in one walk: they take in a common tensor, and neither needs the other.
bool CanJoin(const WalkPart& a, const WalkPart& b);

// Of `parts`, those that the sum `root` may be made together with, the nearest first: sums of
// columns before it, sums of rows that only reports need (`late`), and what is as large as the rows
// and comes after it; the rest the walk meets by itself.
std::vector<const WalkPart*> PartnersOf(const WalkPart& root, const std::vector<WalkPart>& parts,
                                        const std::vector<bool>& late);

}  // namespace l3c::l0::lower
