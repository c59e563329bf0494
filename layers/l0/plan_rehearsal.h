// A rehearsal: the control unit runs, its streams take the commands it pushes and keep the order
// that tokens, queues and completions impose, but no kernel runs and no data is read.
//
// The order of a run is fixed by the plan (a token joins one stream to one stream, queues are first
// in, first out), so one rehearsal stands for every run, whatever its timing. What it finds:
//
//   liveness  a stream or the control unit waits for ever; waits and signals do not balance: a
//   token
//             is left with another count than it began with; the unit does not come to an end
//   safety    two commands of different streams touch the same bytes, one of them writes, and
//             neither is ordered before the other: a race. A buffer is read before all of its
//             elements have been written (layers/l0/stored_elements.h). Control computes an offset
//             outside its region
//
// Order is kept in vector clocks: a wait takes over the clock of the signal it meets, a popped
// descriptor that of its push, and a command may touch bytes when every earlier conflicting access
// lies inside its clock.
//
// The host's stop signal is given in a second, short rehearsal, so that the way out is checked too.
// Work is bounded: after kMaxDescriptors pushes or kMaxCommands commands the rehearsal asks the
// unit to stop, and after kMaxAccesses it looks at tokens only.
#pragma once

#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0 {

inline constexpr int64_t kMaxDescriptors = 200'000;
inline constexpr int64_t kMaxCommands = 5'000'000;
inline constexpr int64_t kMaxAccesses = 2'000'000;

// For a plan whose every other check has passed. Reports at most a few errors a unit.
void Rehearse(const Plan& plan, const ControlUnit& unit, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
