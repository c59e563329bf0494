// L1 → L0: from tensor programs and their placement to kernels, buffers, streams and control.
//
//   pipeline ──MergeStep──► one tensor program a step           step.h
//            ──BuildValues─► values and their definitions        values.h, rewrites/algebra.egg
//            ──FindCandidates──► kernels that could be           candidates.h
//            ──ChooseKernels───► kernels that will be            choose.h, rewrites/*.egg
//            ──BuildKernel─────► UOps, and a schedule for each   kernel_build.h
//            ──MemoryBound─────► what is saved, what made again  memory_bound.h, recompute.h
//            ──PackArena───────► offsets                         arena.h
//            ──AssemblePlan────► streams, tokens, sequences, control
//
// Streams: a loader and one for compute. A step reads what the step before it wrote (the state), so
// steps never overlap one another; what overlaps them is loading, `pipeline_depth` batches ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/kernel_cost.h"
#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/search/lowering.h"
#include "layers/support/blob_cache.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0::lower {

struct LowerOptions {
  search::LoweringOptions search;
  egraph::Numerics numerics = egraph::Numerics::kReassoc;
  bool explain = false;  // cost the losers too
  // Bytes that all buffers of the plan together may take in the memory of the compute node, beside
  // what the system says of that.
  std::optional<int64_t> memory;
  RuleSources rules = EmbeddedRules();
  // Plans of steps from earlier runs (step_cache.h); the result is the same with and without. They
  // are kept as `cache_kind`.
  support::BlobCache* cache = nullptr;
  std::string cache_kind = "search";
};

// `program` must have passed l1::Verify. Decision ids begin with "l0/PIPELINE/". Faults of the
// input that the structural checks cannot see go to `diagnostics`.
search::LoweringResult<Plan> Lower(const l1::Program& program, const KernelCostModel& costs,
                                   const LowerOptions& options, support::Diagnostics& diagnostics);

}  // namespace l3c::l0::lower
