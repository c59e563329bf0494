// Placement: on which node each computation of a step runs, over how many nodes the model is
// shared out, and how far steps overlap.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/search/lowering.h"

namespace l3c::l1 {

// The work of one layer of a model on a batch, forwards and backwards.
struct LayerWork {
  double flops = 0;
  double parameter_bytes = 0;  // and as many of gradients
  double forward_bytes = 0;    // over the boundary to the next layer
  double backward_bytes = 0;   // back over it
};

// The exact work of one step of the method, machine-independent.
struct StepDemand {
  double model_flops = 0;      // forward and backward
  double update_flops = 0;     // the optimiser
  double batch_bytes = 0;      // of one batch: what the loader reads, decodes and hands over
  double gradient_bytes = 0;   // from the model to the update
  double state_bytes = 0;      // parameters and optimiser state, persistent
  double parameter_bytes = 0;  // what the model reads of the state
  double largest_bytes = 0;    // of a parameter
  int64_t parameters = 0;      // how many
  // Of the buckets that gradients are added up in by so many nodes: bytes of the largest.
  std::map<int64_t, double> largest_bucket;
  double activation_bytes = 0;  // the most that lives at once between forward and backward
  // Into how many equal parts a batch can be cut; and why not into others.
  std::vector<int64_t> shares;
  std::map<int64_t, std::string> why_not_shared;
  // By depth, where the model can be computed in stages; and into how many parts a batch can be cut
  // for them.
  std::vector<LayerWork> layers;
  std::vector<int64_t> micro_batches;
  // Why the model must be computed where the state lies; "": it need not.
  std::string why_beside_state;

  bool CanShare(int64_t parts) const;
  bool CanBeStages(size_t stages) const;
};

struct Placement {
  uint32_t storage = 0;  // where the data lie
  uint32_t loader = 0;   // the compute node whose stages draw batches
  uint32_t staging = 0;  // the memory that the loader fills
  // Forward and backward: one node, or several that each take an equal part of the rows; and the
  // memories that they work in.
  std::vector<uint32_t> model;
  std::vector<uint32_t> resident;
  uint32_t update = 0;  // the actor with the state
  uint32_t home = 0;    // the memory that the state is used in, and lies in
  // Each node of `model` has the state in its memory and updates it, with gradients that they add
  // up in a ring in their order; `update` and `home` are the first ones.
  bool replicated = false;
  // Another memory that it rests in, of which a window alone is in `home`.
  std::optional<uint32_t> rests;
  // Of a model in stages: the stage of each layer on the nodes of `model`, and into how many parts
  // a batch is cut. Without: every node computes all layers on its part of the rows.
  std::vector<size_t> stage_of;
  int64_t micro_batches = 1;
  // A batch is carried to `resident` by a stage of its own, not by the one that loads it.
  bool own_transfer = false;
  int64_t pipeline_depth = 1;
};

struct PlacementResult {
  std::optional<Placement> placement;
  std::optional<search::SearchFailure> failure;
  search::Explanation explanation;
};

// `isas`: instruction sets that may be used; of none: any. Ties go to the node that is declared
// first.
PlacementResult Place(const System& system, const StepDemand& demand,
                      const std::vector<std::string>& isas, int64_t max_depth,
                      const search::LoweringOptions& options);

// Rates that a system description implies, in FLOP/s of f32: cores × vector lanes × 2 (fused
// multiply and add) × 2 pipes × clock for CPUs, sm × 128 lanes × 2 × clock for GPUs. Assumed
// clocks: 2.5 GHz and 1.5 GHz. Analytical: calibration replaces them.
double AssumedFlops(const SystemNode& node);

}  // namespace l3c::l1
