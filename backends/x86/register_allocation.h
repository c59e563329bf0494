// Where the values of a control unit live: each in one register for all its life, or in a slot of
// the stack.
//
// Linear scan over the hull of a value's life in the order of the blocks. The units of a plan have
// about five values alive at a time, so slots are for what people write by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/l0/control.h"

namespace l3c::x86 {

struct ValuePlace {
  int reg = -1;   // index into the allocatable registers, or
  int slot = -1;  // of eight bytes; both -1: the value does not exist
};

struct Allocation {
  std::vector<ValuePlace> places;  // by the unit's registers
  int slots = 0;
  std::vector<int> uses;  // how often each value is read
};

Allocation AllocateRegisters(const l0::ControlUnit& unit, int registers);

}  // namespace l3c::x86
