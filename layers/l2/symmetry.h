// equivariant(group): whether a network keeps a symmetry of what it reads.
//
//   permutation  reordering the positions of the input reorders those of the output
//   translation  shifting them shifts those of the output, away from the edges, where zeros are
//   seen
//
// An output without positions stays the same instead. A position is a row of a sequence, or a row
// and column of an image; channels are the last axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "layers/l2/ir.h"

namespace l3c::l2 {

// Whether anything is known of the group here; of the others no layer is known to keep any.
bool IsKnownSymmetry(std::string_view group);

// The first node that does not keep the symmetry; nothing when all do. Shapes must be filled.
std::optional<uint32_t> FirstWithoutSymmetry(const InferGraph& infer, std::string_view group);

}  // namespace l3c::l2
