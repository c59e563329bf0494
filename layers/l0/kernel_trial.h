// Trying a kernel on random numbers: what stands in its buffers, the same on every machine, and how
// far two results are apart.
#pragma once

#include <cstddef>
#include <limits>
#include <random>
#include <span>

#include "layers/l0/kernel.h"

namespace l3c::l0 {

size_t BytesOf(const Param& param);

// Reals uniform in [−2, 2), whole numbers 0 to 3, of bool 0 and 1. Of more than `period` elements
// the first are drawn and repeated.
void FillRandom(const Param& param, std::mt19937_64& random, std::byte* to,
                size_t period = std::numeric_limits<size_t>::max());

// Relative distances of what was found from what is expected; infinite where one of the two is no
// number or infinite and the other is not the same. Zero where all elements are equal.
struct Gap {
  double norm = 0;     // of all elements: ‖found − expected‖ / ‖expected‖
  double largest = 0;  // of the worst: max |found − expected| / max |expected|
};
Gap GapBetween(const Param& param, const std::byte* expected, const std::byte* found);

}  // namespace l3c::l0
