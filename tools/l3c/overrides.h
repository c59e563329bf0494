// --epochs, --steps and --seed on a program that already holds them: a file of L1 or L0.
#pragma once

#include <cstdint>
#include <optional>

#include "layers/l0/plan.h"
#include "layers/l1/ir.h"

namespace l3c::tools {

struct RunLength {
  std::optional<int64_t> epochs;  // at most one of epochs and steps
  std::optional<int64_t> steps;
  std::optional<uint64_t> seed;
};

// Changes the phases and the seed in place; what the program derived from its own length (the end
// of a learning rate's decay, say) stays as written. False after printing why not: a program of
// several phases has no one length.
bool Override(l1::Program& program, const RunLength& length);
bool Override(l0::Plan& plan, const RunLength& length);

}  // namespace l3c::tools
