// What the arithmetic instructions of PTX compute, on bits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tests/backends/ptx/ptx_module.h"

namespace l3c::testing {

// From the source operands to the result. Registers hold their value in the low bits, zeros above;
// a predicate is 0 or 1. Nothing for operands whose result the ISA leaves open.
using PtxFunction = std::function<std::optional<uint64_t>(const uint64_t* in)>;

// Empty for instructions that are not arithmetic, or not known.
PtxFunction PtxFunctionOf(const PtxInstruction& instruction);

}  // namespace l3c::testing
