// Tiles of AMX hold 8 KiB of a thread's state, so a process has to ask the system before it may use
// them (Linux: Documentation/arch/x86/xstate.rst).
#pragma once

namespace l3c::support {

// Asks once, for every thread of this process. False where the CPU has no tiles, or the system does
// not know of them or refuses, as it does when a thread's signal stack is too small for them.
bool TilesPermitted();

}  // namespace l3c::support
