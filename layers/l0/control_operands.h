// What an instruction of a control unit reads and makes: for all that walks a unit.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/l0/control.h"

namespace l3c::l0 {

// The operands that an instruction reads.
std::vector<Operand> OperandsOf(const ControlInstruction& instruction);

// Whether it assigns its `result`.
bool HasResult(ControlOp op);

// What `cmp` gives for two values.
bool Holds(CmpOp op, int64_t a, int64_t b);

}  // namespace l3c::l0
