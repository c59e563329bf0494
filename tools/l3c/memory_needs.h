// What a plan takes of this machine's memory, told before a run spends time on it.
#pragma once

#include <string>

#include "layers/l0/plan.h"

namespace l3c::tools {

// Of all its pools.
double BytesOf(const l0::Plan& plan);

// "the plan takes 12,345 bytes of memory: state 10,000, …; the machine has 8,123,456,789 available"
std::string DescribeMemory(const l0::Plan& plan);

// False after printing what it needs and what there is. `lowered`: the plan was made from a program
// above it, so that it can be made again with less memory.
bool FitsThisMachine(const l0::Plan& plan, bool lowered);

}  // namespace l3c::tools
