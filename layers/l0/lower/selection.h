// Reads a choice of e-nodes as the kernels that it stands for.
#pragma once

#include <cstdint>
#include <span>

#include "egraph/extract/extract.h"
#include "egraph/view.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/definition_numbers.h"

namespace l3c::l0::lower {

// An integer argument of an e-node.
int64_t IntegerOf(const egraph::EGraphView& view, egraph::ENodeRef node, size_t argument);

// The kernel that stores what a term of sort Mem stands for.
Storage StoredAt(const egraph::EGraphView& view, const egraph::Extraction& best,
                 egraph::ClassRef memory);

// `roots`: the classes of the step's reports, then those of its updates. All but `forms` and
// `seconds` is filled in.
Selection ReadSelection(const egraph::EGraphView& view, const egraph::Extraction& best,
                        std::span<const egraph::ClassRef> roots, const Step& step,
                        const CandidateSet& candidates, const DefinitionNumbers& numbers);

}  // namespace l3c::l0::lower
