// What a specification and the priors leave to choose from: the first step of the search for a
// method.
#pragma once

#include <cstdint>
#include <optional>

#include "layers/l2/candidate.h"
#include "layers/l2/ir.h"
#include "layers/l2/priors.h"
#include "layers/l3/ir.h"
#include "layers/search/decision.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// Fills `space`, or says why no method of the searched kind is possible. What the specification
// rules out is added to explanation.pruned.
//
// `rows`: samples of the train split, where they are known. `first`: the methods of a model that
// trains together with this one and was searched before it; null for the first.
std::optional<search::SearchFailure> BuildSpace(const l3::Module& spec, const l3::Model& model,
                                                const Priors& priors, std::optional<int64_t> rows,
                                                const Methods* first,
                                                search::Explanation& explanation, Space& space);

}  // namespace l3c::l2
