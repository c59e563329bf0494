// The updates: how parameters move, given gradients.
//
//   leaves     sgd, adam, muon, lion               move the parameters
//   wrappers   schedule, gradient_clip, ema        change what the inner update sees, or keep more
//
// The formula of each stands where it is defined: update_*.cc.
//
// Scalars that depend on the step are computed in f64 and rounded to the parameters' dtype once: 1
// − 0.999ᵗ loses half its digits in f32.
#pragma once

#include <deque>
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
  std::vector<tensor::NodeId> history;   // f64 []: by parameter, those that its state has seen
  std::optional<tensor::NodeId> factor;  // f64 []: of the learning rate; none: 1
  std::vector<tensor::NodeId> parameters;
  std::vector<tensor::NodeId> gradients;
  // State of this update alone: state[i][p] is field i of parameter p. Replaced by its new value.
  std::vector<std::vector<tensor::NodeId>> state;
  // What the parameters become; set by the innermost update.
  std::vector<tensor::NodeId> updated;
};

// What evaluation reads in place of a parameter: see UpdateEntry::evaluated.
struct EvaluatedParameter {
  tensor::Graph* graph = nullptr;
  tensor::NodeId parameter = 0;
  std::vector<tensor::NodeId> state;  // by role
  tensor::NodeId completed = 0;       // f64 []
};

struct UpdateEntry {
  Entry form;
  // The formula asks how many steps the state has seen: UpdateStep::history.
  bool counts_history = false;
  // State kept for each parameter, by role ("m", "v"); same shape as the parameter, zero at first.
  std::function<std::vector<std::string>(const Form&)> state;
  // A leaf sets `updated`; a wrapper changes `factor` or `gradients` for its inner update.
  std::function<void(const Form&, UpdateStep&)> expand;
  // Wrappers: what is left to do once `updated` is set; null: nothing. It is done for every
  // parameter, also for those that the step leaves as they are.
  std::function<void(const Form&, UpdateStep&)> after;
  // Wrappers: what evaluation reads in place of a parameter; null: the parameter.
  std::function<tensor::NodeId(const Form&, const EvaluatedParameter&)> evaluated;
  // Index of the argument that is the inner update; none for leaves.
  std::optional<size_t> inner;
};

const UpdateEntry* FindUpdate(std::string_view name);
const std::deque<UpdateEntry>& AllUpdates();

// One file each.
UpdateEntry SgdUpdate();                    // update_sgd.cc
UpdateEntry AdamUpdate();                   // update_adam.cc
UpdateEntry LionUpdate();                   // update_lion.cc
UpdateEntry MuonUpdate();                   // update_muon.cc
std::vector<UpdateEntry> UpdateWrappers();  // update_wrappers.cc: schedule gradient_clip ema

// The chain from the outermost form to the leaf.
std::vector<const Form*> UpdateChain(const Form& update);
// The link of the chain that has `evaluated`, or null.
const Form* EvaluationUpdate(const Form& update);
// Whether two links are the same but for the updates inside them.
bool SameLink(const Form& a, const Form& b);
// The state that a link keeps of a parameter in a role: linear1_weight_m.
std::string StateName(const std::string& parameter, const Form& link, const std::string& role,
                      const UpdatePlace& place);

}  // namespace l3c::l2
