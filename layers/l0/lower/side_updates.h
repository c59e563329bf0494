// Which updates one kernel can make beside that of a weight.
//
// The gradient of a bias is the sum of the rows that its weight's gradient multiplies, xᵀ·dY and
// Σ dY: one kernel can make both, a tile of columns at a time, with dY near. It then shares the
// columns among workers, as every block must make all of its sums.
#pragma once

#include <optional>
#include <vector>

#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

// A group whose new values need the sum of the rows of another value.
struct ColumnSum {
  SideUpdate update;
  std::vector<ValueId> rows;  // that are summed: all that have one figure a column left
};

// Nothing where the group's values are no vectors, or made from no such sum. `loop` is the update
// of the group as a kernel of its own.
std::optional<ColumnSum> DescribeColumnSum(const ValueTable& table, const Candidate& loop);

// Of `sums`, those of a factor of `anchor` in an update of `roots`, whose columns they share.
std::vector<SideUpdate> SideUpdatesOf(const ValueTable& table, const std::vector<ColumnSum>& sums,
                                      const std::vector<ValueId>& roots, ValueId anchor);

}  // namespace l3c::l0::lower
