// The updates: how parameters move, given gradients.
//
//   sgd(lr, momentum: 0)          v ← momentum·v + g;  p ← p − lr·v        (no v when momentum is
//   0) adam(lr, beta1, beta2, eps)   m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²
//                                 p ← p − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + eps),  t = 1, 2, …
//                                 (Kingma & Ba 2015, algorithm 1)
//   schedule(warmup, decay, inner)  multiplies the learning rate of `inner` at step s = 0, 1, … by
//                                 min((s+1)/warmup, 1) · decay(q),
//                                 q = clamp((s − warmup)/max(total − warmup, 1), 0, 1),
//                                 cosine ½(1+cos πq), linear 1−q, constant 1
//   gradient_clip(max_norm, inner)  g ← g · max_norm / max(‖g‖₂, max_norm), ‖·‖ over all parameters
//
// Scalars that depend on the step are computed in f64 and rounded to f32 once: 1 − 0.999ᵗ loses
// half its digits in f32.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/tensor/graph.h"

namespace l3c::l2 {

// What an update sees and changes while the graph of a step is built.
struct UpdateStep {
  tensor::Graph* graph = nullptr;
  int64_t total_steps = 1;
  tensor::NodeId completed = 0;          // f64 []: steps completed before this one
  std::optional<tensor::NodeId> factor;  // f64 []: of the learning rate; none: 1
  std::vector<tensor::NodeId> parameters;
  std::vector<tensor::NodeId> gradients;
  // State of this update alone: state[i][p] is field i of parameter p. Replaced by its new value.
  std::vector<std::vector<tensor::NodeId>> state;
  // What the parameters become; set by the innermost update.
  std::vector<tensor::NodeId> updated;
};

struct UpdateEntry {
  Entry form;
  // State kept for each parameter, by role ("m", "v"); same shape as the parameter, zero at first.
  std::function<std::vector<std::string>(const Form&)> state;
  // A leaf sets `updated`; a wrapper changes `factor` or `gradients` for its inner update.
  std::function<void(const Form&, UpdateStep&)> expand;
  // Index of the argument that is the inner update; none for leaves.
  std::optional<size_t> inner;
};

const UpdateEntry* FindUpdate(std::string_view name);
const std::vector<UpdateEntry>& AllUpdates();
void RegisterUpdate(UpdateEntry entry);  // as RegisterLayer

// The chain from the outermost form to the leaf.
std::vector<const Form*> UpdateChain(const Form& update);

}  // namespace l3c::l2
