// The checks on an L2 module, after those of its L3 declarations (layers/l3/verify.h). They only
// read.
//
//   consistency     shape propagation       operand shapes on every edge of the network
//   consistency     spec constraints        output domain, depth, width, param_budget
//   consistency     backward compatibility  the backward method can handle the network
//   consistency     update shape match      parameters keep their shapes
//   consistency     sample/data match       the batch and the data's domains
//   resource bound  finiteness              the network is acyclic, phases end
//   resource bound  resource estimation     figures for the next layer; estimate.h
#pragma once

#include "layers/l2/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l2 {

// Bounds beyond which a method is taken for a mistake.
inline constexpr int64_t kMaxParameters = int64_t{1} << 40;
inline constexpr int64_t kMaxTotalEpochs = int64_t{1} << 24;
inline constexpr int64_t kMaxTotalSteps = int64_t{1} << 40;
inline constexpr int64_t kMaxActivationBytes = int64_t{1} << 42;  // one batch, all layers

// True when nothing was reported.
bool Verify(const Module& module, support::Diagnostics& diagnostics);

}  // namespace l3c::l2
