// How the layers of a model are given to the nodes of a site in stages.
//
// Of few layers every cut is a choice. n layers in p stages can be cut in (n − 1 over p − 1) ways,
// which for 64 layers is more than anybody can look at: of those, the even cut, for each number of
// parts of a batch the cut whose slowest stage is fastest (found by dynamic programming over the
// last layer of each stage, so no cut that fits has a faster one), and what comes of either by
// moving one layer over one boundary.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "layers/l1/place.h"
#include "layers/l1/place_model.h"
#include "layers/l1/place_site.h"

namespace l3c::l1 {

// Where there are no more cuts than that, all are looked at.
inline constexpr double kAllCuts = 64;

using Cut = std::vector<size_t>;  // layers of each stage

std::string CutLabel(const Cut& cut);  // "2|1|1"
// As many layers for each; the first ones have one more where they do not divide.
Cut EvenCut(size_t layers, size_t stages);
// Those that come of moving one layer over one boundary.
std::vector<Cut> Shifted(const Cut& cut);

// Fills in what a site in stages has of cuts: those that fit with so many steps in flight.
void FindCuts(const StepDemand& demand, const PlacementModel& model, int64_t most_in_flight,
              Site& site);

}  // namespace l3c::l1
