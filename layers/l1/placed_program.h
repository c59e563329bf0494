// The L1 program of a training that has been placed.
#pragma once

#include <vector>

#include "layers/l1/annotations.h"
#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/training_graphs.h"

namespace l3c::l1 {

Program PlacedProgram(const Training& training, const System& system,
                      const std::vector<LayerKernel>& kernels, const Placement& place);

}  // namespace l3c::l1
