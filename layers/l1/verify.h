// The structural verifier: what must hold of an L1 program before it is lowered. It only reads.
//
//   safety          topology consistency   edges join nodes; a path exists for every transfer
//   safety          reference resolution   every name is declared; what runs is scheduled, and
//                                          what a metric adds up runs
//   safety          forwarding signatures  arity, dtype and shape agree where buffers go over; in
//                                          a step each receiver is fed, once, and nothing is lost
//   safety          window separation      who reads an actor's state has a window, and is done
//                                          before the step's message arrives
//   consistency     shape propagation      tensor ops fit (reported by the parser, at the op);
//                                          state, window fields and metrics have their types
//   consistency     region provenance      a buffer lives where its receiver can reach it
//   liveness        buffer conservation    on every path each buffer is forwarded or dropped once
//   liveness        tensor reachability    every value and every argument serves an output
//   resource-bound  persistent memory      state fits in the memory of its node
//   resource-bound  finiteness             nothing that is handed over comes back
//
// Each check is one function of the verify_*.cc files and linear in the program.
#pragma once

#include "layers/l1/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l1 {

// True when nothing was reported. A system fragment is checked for its topology alone.
bool Verify(const Program& program, support::Diagnostics& diagnostics);
// Of a verified program: liveness. Some actor has a parameter, which is what a run leaves behind.
bool VerifyTrains(const Program& program, support::Diagnostics& diagnostics);

}  // namespace l3c::l1
