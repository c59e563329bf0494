// What else a program can be placed as, where no plan of the best placement fits into memory: the
// search for a placement counts what lives between forward and backward as a whole, the lowering to
// L0 buffer by buffer.
#pragma once

#include <string>
#include <vector>

#include "layers/search/decision.h"

namespace l3c::tools {

// So many are lowered to L0 in turn.
inline constexpr size_t kMostPlacements = 12;

struct OtherPlacement {
  std::string decision;  // an id, as "l1/partition"
  std::string label;     // the choice to hold it to
};

// The losers of decisions that say what lies where, cheapest first; none of a forced decision.
// `placing` is the explanation of the lowering from L2 to L1.
std::vector<OtherPlacement> OtherPlacements(const search::Explanation& placing);

// In the explanation of the placement that was reached by holding to `taken`: the decision is the
// search's own, and what it decided at first did not fit. `first` is that first explanation, `why`
// what the lowering to L0 said.
void TellWhatDidNotFit(const search::Explanation& first, const OtherPlacement& taken,
                       const std::string& why, search::Explanation& placing);

}  // namespace l3c::tools
