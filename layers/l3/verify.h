// The checks on a resolved L3 module. Reads only; linear in the size of the program.
//
//   safety          reference resolution   dangling references, also in expressions; names unique
//   safety          loss signature         a term reads what a term of its kind cannot read
//   consistency     domain compatibility   predicted against target, argument against input, …
//   consistency     constraint agreement   properties against one another and against the domains
//   resource bound  finiteness             sizes positive and bounded, weights finite, no cycles
#pragma once

#include "layers/l3/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l3 {

// Bounds beyond which a specification is taken for a mistake.
inline constexpr int64_t kMaxDepth = 4096;
inline constexpr int64_t kMaxWidth = int64_t{1} << 24;
inline constexpr int64_t kMaxParams = int64_t{1} << 44;
inline constexpr double kMaxLatencySeconds = 86400;

// True when nothing was reported.
bool Verify(const Module& module, support::Diagnostics& diagnostics);

}  // namespace l3c::l3
