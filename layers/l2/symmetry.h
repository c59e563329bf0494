// equivariant(group): whether a network keeps a symmetry of what it reads.
//
//   permutation  reordering the positions of the input reorders those of the output
//   translation  shifting them shifts those of the output, away from the edges, where zeros are
//                seen
//   reflection   reversing one axis of the input (ReflectionAxis) changes nothing
//   c4, d4       turning a square image by quarters (and mirroring it) changes nothing
//
// An output without positions stays the same under the first two as well. A position is a row of a
// sequence, or a row and column of an image; channels are the last axis. Layers keep the first two
// by what they are; the others come from the mean over all actions (infer_symmetric.cc), whose
// result has no positions of the input's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/l2/ir.h"

namespace l3c::l2 {

// reflection, c4 and d4.
bool IsGroupOfActions(std::string_view group);
// The forms of the layer `acted`, one for each action of the group, the identity first. `axis`:
// what a reflection reverses; the images of d4 are mirrored along axis 1.
std::vector<Form> ActionsOf(std::string_view group, int64_t axis);
// The axis that equivariant(reflection) reverses: the columns of an image, else the first.
int64_t ReflectionAxis(const l3::Domain& domain);

// The first node that does not keep the symmetry; nothing when all do. Shapes must be filled.
// `axis`: of a reflection.
std::optional<uint32_t> FirstWithoutSymmetry(const InferGraph& infer, std::string_view group,
                                             int64_t axis = 0);

}  // namespace l3c::l2
