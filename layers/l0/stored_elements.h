// Which elements of a parameter one launch of a kernel writes.
//
//   store p[256*i + j]   i < 64, j < 256      elements 0..16384
//   store p[2*i]         i < 4                elements 0, 2, 4, 6
//
// Counted exactly from the stores' indices and guards. What cannot be decided from the kernel alone
// (a store at an index that is loaded), or would take too long, counts as every element, so that no
// kernel is blamed wrongly.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "layers/l0/kernel.h"

namespace l3c::l0 {

// Half-open ranges of elements, ascending, apart from each other.
using ElementRuns = std::vector<std::pair<int64_t, int64_t>>;

int64_t CountElements(const ElementRuns& runs);
ElementRuns UnionOf(const ElementRuns& a, const ElementRuns& b);

// Steps that StoredElements may take for one kernel's parameter, and runs it may return.
inline constexpr int64_t kMaxStoreSteps = 1 << 18;
inline constexpr size_t kMaxElementRuns = 1 << 12;

// Of a kernel that VerifyKernel accepts.
ElementRuns StoredElements(const Kernel& kernel, uint32_t param);

}  // namespace l3c::l0
