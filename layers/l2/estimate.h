// Rough resources of a method, from the expansions of its layers: what the verifier states and the
// search scores with. No machine enters here.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "layers/l2/ir.h"
#include "layers/l2/layers.h"
#include "layers/l2/priors.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// One layer: parameters, and the work of its forward pass for each sample and for each step
// whatever the batch (its parameters read).
struct LayerWork {
  int64_t parameters = 0;
  double activation_bytes = 0;  // of its result, one sample
  search::StepWork per_sample;
  search::StepWork per_step;
};
// Counted on the expansion for one sample: a contraction is 2mkn; an elementwise or reduction op
// costs its weight (transcendental 8, division and root 4, else 1) an element; each operand and the
// result pass memory once; one launch a layer.
// `borrowed`: the parameters of an entry that has none of its own.
LayerWork EstimateLayer(const LayerEntry& entry, const Form& form, std::span<const Shape> operands,
                        std::span<const Parameter> borrowed = {});

// The same of a node of a network, whose parameters count where they are first used.
LayerWork EstimateNode(const InferGraph& infer, uint32_t id);

// Forward and backward: twice the forward contractions for the two gradients, and for the rest as
// much again as forward.
LayerWork WithBackward(const LayerWork& forward);

// Predicted seconds of a layer's forward pass for one sample: parameters are read and the kernel
// launched. On the priors' reference machine, whatever estimates the steps.
double ForwardLatency(const LayerWork& forward, const Priors& priors);

// Work of one optimiser step for each parameter, counted on its expansion: state, gradient and
// parameter are read, state and parameter written.
search::StepWork EstimateUpdate(const Form& update);

struct MethodEstimate {
  int64_t parameters = 0;
  int64_t batch = 0;
  double forward_flops = 0;     // one sample
  double step_flops = 0;        // one step
  double parameter_bytes = 0;   // f32
  double state_bytes = 0;       // of the optimiser
  double activation_bytes = 0;  // one batch, every layer's result kept
  search::StepWork step;
};
MethodEstimate EstimateMethod(const Methods& methods);

// Predicted seconds of the forward pass of one sample: what latency_budget bounds.
double ForwardLatency(const InferGraph& infer, const Priors& priors);
// Three digits, rounded up, so that a budget of what is said is enough: "44.6us".
std::string LatencyText(double seconds);

}  // namespace l3c::l2
