// Whether the two sides of a rule give the same tensor, as far as the rule's class of numerics
// goes.
//
//   exact    bit for bit. Any NaN equals any other; −0 is not 0.
//   reassoc  NaN and infinities in the same places; what is left differs by at most 1e-5 of its
//   norm
//            in f32 and 1e-10 in f64, beside what rounding in another order explains: a unit in the
//            last place of the largest number of the left side for each of its elements.
//   fast     NaN and infinities in the same places for finite operands; 1e-2 of the norm.
// Integers and booleans must be equal under every class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "egraph/numerics.h"
#include "layers/tensor/interpreter.h"

namespace l3c::rules {

// What the left side is made of.
struct Magnitude {
  double largest = 0;    // finite number in it, by absolute value
  int64_t elements = 1;  // of its largest tensor
};

// Why not, in a few words; nothing when they agree.
std::optional<std::string> Disagreement(const tensor::Array& left, const tensor::Array& right,
                                        egraph::Numerics numerics, const Magnitude& magnitude);

}  // namespace l3c::rules
