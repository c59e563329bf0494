// Where local improvement starts: nothing shares a kernel.
//
// Every value that may be kept in memory is stored by a kernel of its own, as the program defines
// it, and loaded by all that read it; state is brought up to date by elementwise kernels. From
// there each rewrite of one place is a step of its own that has to pay for itself.
#pragma once

#include <cstdint>
#include <vector>

#include "egraph/view.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/definition_numbers.h"

namespace l3c::l0::lower {

// By e-node: of a class the one of the least rank that can be had is its part of that plan.
std::vector<uint8_t> UnfusedRanks(const egraph::EGraphView& view, const CandidateSet& candidates,
                                  const DefinitionNumbers& numbers);

}  // namespace l3c::l0::lower
