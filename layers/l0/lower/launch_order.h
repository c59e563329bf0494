// The order in which the kernels of a step are launched.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "layers/l0/lower/kernel_build.h"

namespace l3c::l0::lower {

struct LaunchToOrder {
  const Kernel* kernel = nullptr;
  const std::vector<Binding>* bindings = nullptr;  // in parameter order
};

// A kernel follows those whose results it loads, and a kernel that overwrites state those that load
// the old value. Of several such orders the one in which the fewest bytes live at once: among those
// that could be next goes first the one that frees most memory, or the first of the list; what
// makes more than it frees waits until somebody reads it; what frees more than it makes goes as
// early as it can, or where it was. Nothing where they wait for one another.
std::optional<std::vector<size_t>> OrderLaunches(std::span<const LaunchToOrder> launches,
                                                 const ValueTable& table);

}  // namespace l3c::l0::lower
