// The exact work of one step of a training, which placement starts from.
#pragma once

#include <vector>

#include "layers/l1/annotations.h"
#include "layers/l1/place.h"
#include "layers/l1/training_graphs.h"

namespace l3c::l1 {

// How the work can be shared is looked at as far as the system has nodes to share it.
StepDemand DemandOf(const Training& training, const System& system,
                    const std::vector<LayerKernel>& kernels);

}  // namespace l3c::l1
