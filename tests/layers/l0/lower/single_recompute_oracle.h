// The best plan of a graph in which each launch of the forward pass runs again at most once, as an
// integer program solved by COIN-OR Cbc.
//
// The formulation is that of Jain et al. 2020 (Checkmate), with a row more for each launch: what
// runs again before a launch of the backward pass, what is kept from one to the next, and for every
// moment the bytes that live.
#pragma once

#include <cstdint>
#include <optional>

#include "layers/l0/lower/launch_graph.h"

namespace l3c::l0::lower {

// Every launch of the forward pass makes one value, with the launch's number. Seconds of all that
// runs again; nothing when no such plan fits or the solver has not found one.
std::optional<double> BestSingleRecompute(const LaunchGraph& graph, int64_t bound);

}  // namespace l3c::l0::lower
