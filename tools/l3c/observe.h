// l3c run --observe: what a run's kernels took, as evidence for the costs of later plans.
#pragma once

#include <vector>

#include "cost/evidence.h"
#include "layers/l0/plan.h"
#include "runtime/timeline.h"
#include "tools/l3c/options.h"

namespace l3c::tools {

// Kernels that are like one of the probes (cost/probe.h), each by the lower quartile of its
// launches once the first quarter of them is over; of several of one shape the fastest. What was
// launched fewer than 16 times, or is over sooner than a clock can tell, is left out.
std::vector<cost::EvidencePoint> Observed(const l0::Plan& plan, const runtime::Timeline& timeline);

// Whether the run that is asked for can be observed: after printing why, if it cannot.
bool CanObserve(const Options& options);
// Writes the evidence that plans use, with the run's observations in the place of older points of
// the same shapes, as the next revision, and tells which. False after printing why it could not.
bool Observe(const l0::Plan& plan, const runtime::Timeline& timeline, const Options& options);

}  // namespace l3c::tools
