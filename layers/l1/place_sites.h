// The sites of a system: where a model may be computed.
//
// Of up to kAllSets nodes every set is a site. Of more, the sets of the kAllSets fastest are; and
// of each size the fastest nodes, and around each node those that have the widest paths to it, one
// added after the other. In stages of more than kAllSets nodes there is one set of each size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/place_model.h"
#include "layers/l1/place_site.h"

namespace l3c::l1 {

inline constexpr size_t kAllSets = 6;
// No batch is shared by more.
inline constexpr size_t kMaxSharing = 16;

// Each node alone in each of its memories; then, where a batch may be cut into so many parts, sets
// of nodes in their first memories, smaller sets first; then the same as stages.
// `most_in_flight`: steps whose batches must fit beside a stage.
std::vector<Site> SitesOf(const System& system, const StepDemand& demand,
                          const PlacementModel& model, const std::vector<uint32_t>& nodes,
                          int64_t most_in_flight);

}  // namespace l3c::l1
