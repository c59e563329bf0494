// How far fusion reaches where a step is too large for every kernel to reach as far as it could.
//
// What the choice of kernels costs to search grows with the number of kernels times the values that
// each of them considers. A kernel considers the values nearest to what it stores, up to a bound:
// its span. The widest span is wider than any kernel that pays; where a step is so deep that its
// kernels would not fit into the budget of nodes, narrower spans are tried in turn, and last every
// op is a kernel of its own, which every step has room for. What is lost is fusion across more
// values than the span, and with it values that could have stayed in registers: the plan is the
// best of those that were looked at, not of all. `--explain` says so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

// Values that a kernel considers, the widest first. Below the last one, kernels of a row's
// statistics and their derivatives fall apart.
inline constexpr std::array<size_t, 4> kSpans = {320, 160, 96, 64};

// Rows that the search may take for a step of so many values, where nobody has said how many: what
// the narrowest span needs for chains in which every value may be kept, but no more than 1 GB.
uint64_t RowsOfDeepStep(size_t values);

// Rows that a step of so many operations may take in any case: what a plan needs in which nothing
// is fused. Where the budget of nodes is smaller there is a plan all the same.
uint64_t LeastRows(size_t operations);

// The first values, in the order of the table, from which more than `most` values would have to be
// computed that no kernel may load: keeping these in memory leaves nothing that one kernel of this
// span could not compute.
std::vector<ValueId> EndsOfLongChains(const ValueTable& table, const std::vector<bool>& stored,
                                      size_t most);

}  // namespace l3c::l0::lower
