// Names for the values of tensor graphs, so that the text of L1 and every message about it say
// where a value comes from: `norm1_rsqrt`, `d_linear2_matmul`, `linear1_weight_m_scale`.
#pragma once

#include <string>

#include "layers/tensor/graph.h"

namespace l3c::l1 {

// Whether a graph made the name up ("t12").
bool IsFreshName(const std::string& name);

// Renames every value whose name was made up. A name that says something stays, and an output's
// node takes the output's name, with `suffix`. The rest are named after the named value that they
// are computed for, the first one that uses them, and their own op. With `scalars`, values of no
// axes are named after that word instead.
void NameValues(tensor::Graph& graph, const std::string& suffix = "",
                const std::string& scalars = "");

}  // namespace l3c::l1
