// One pass instead of several over the same row.
#pragma once

#include "layers/l0/kernel.h"

namespace l3c::l0::lower {

// Reductions over axes of the same extents, at the same points, of which none needs another, get
// the same axes where they load a common element: then they share a loop, and what several of them
// compute is computed once. Sums keep their order. Expects a kernel without a schedule.
void MergePasses(Kernel& kernel);

}  // namespace l3c::l0::lower
