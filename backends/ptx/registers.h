// Virtual registers as PTX wants them: those that nothing reads are gone, and the rest are numbered
// within their class. What a physical register is, ptxas decides.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/ptx/instruction.h"

namespace l3c::ptx {

// Removes instructions whose results nothing reads and that do nothing else.
void RemoveDead(Function& function);

struct Numbering {
  std::vector<uint32_t> number;  // by virtual register, within its class
  std::array<uint32_t, kRegClasses> count = {};
};
// In the order in which they are first written.
Numbering NumberRegisters(const Function& function);

}  // namespace l3c::ptx
