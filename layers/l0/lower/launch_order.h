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
// the old value. Among those that could be next, the one that frees most memory goes first, then
// the first of the list; what makes more than it frees waits until somebody reads it. Nothing where
// they wait for one another.
std::optional<std::vector<size_t>> OrderLaunches(std::span<const LaunchToOrder> launches,
                                                 const ValueTable& table);

}  // namespace l3c::l0::lower
