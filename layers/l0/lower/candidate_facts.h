// Facts about the candidates, from which rewrites/kernel_grouping.egg and fusion.egg make the
// alternatives. kernel_terms.egg lists them.
#pragma once

#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/definition_numbers.h"
#include "layers/l0/lower/dot_forms.h"
#include "layers/l0/lower/store_facts.h"

namespace l3c::l0::lower {

void AssertCandidateFacts(const ValueTable& table, const CandidateSet& candidates, DotForms& forms,
                          const DefinitionNumbers& numbers, const AssertFact& fact);

}  // namespace l3c::l0::lower
