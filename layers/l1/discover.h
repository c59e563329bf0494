// The machine at hand as a system.
#pragma once

#include "layers/l1/ir.h"

namespace l3c::l1 {

// A system `host` with ssd_0, ram_0 and cpu_0: cores and memory as hwloc finds them within what
// this process may use, instruction sets by cpuid, bandwidths assumed (kAssumed…): measuring is the
// business of calibration. Capacity is rounded down to whole GB, so that the same machine gives the
// same text from one boot to the next.
System DiscoverHost();

inline constexpr double kAssumedStorageRate = 2e9;  // bytes per second
inline constexpr double kAssumedMemoryRate = 25e9;

}  // namespace l3c::l1
