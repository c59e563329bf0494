// Scheduling of threads that work briefly and that others then wait for.
#pragma once

namespace l3c::runtime {

// Asks the system for short time slices for the calling thread: its fair share of the processor in
// small pieces, but soon after it wakes up, also where busy threads hold every core. Linux 6.12 and
// later grant it to anyone; where it is not granted nothing changes but speed.
void UseShortSlices();

}  // namespace l3c::runtime
