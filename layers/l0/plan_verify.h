// The concrete checks of a plan (phase 2): read-only, each filed under its property.
//
//   safety          ids and names resolve; kernels type-check and stay in bounds (kernel_verify.h);
//                   a launch's arguments match the kernel's parameters in number, dtype and extent;
//                   two slots of a pool never share bytes while both live; no use outside a
//                   lifetime; no read of bytes that nothing wrote; a buffer that one stream writes
//                   and another touches is ordered by tokens; control keeps SSA, region bounds,
//                   access rights
//   consistency     loads match the fields of their source; metrics read what is reported;
//                   names are unique; checkpointed buffers persist; queues lead to streams that
//                   exist
//   liveness        every wait can be met: a token that is waited for is signalled, by another
//                   stream or before; waits and signals balance over the sequences that control
//                   repeats; every block of control ends, and an end can be reached
//   resource-bound  slots lie inside their pool, pools inside the capacity of their node together;
//                   as many staging sets as the pipeline is deep; extents, counts and sizes finite
#pragma once

#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0 {

// Bounds that keep the checks themselves quick on any input.
inline constexpr size_t kMaxStreams = 256;
inline constexpr size_t kMaxFields = 1024;          // of a source; of a load
inline constexpr int64_t kMaxTokenCount = 1 << 16;  // initial
inline constexpr int64_t kMaxSlotPairs = 1 << 22;   // pairs of slots that share bytes

// True when nothing was reported.
bool VerifyPlan(const Plan& plan, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
