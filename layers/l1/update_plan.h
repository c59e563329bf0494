// What the messages of a training's actors do: which updates there are, which parameters each
// moves, and what each counts.
//
// Phases that freeze the same layers and update alike share a variant: a training graph and a
// message of its own. State goes by parameter, role and kind of update, so updates of one name go
// on with each other's and updates of another name begin anew; where a formula asks how many steps
// its state has seen, steps are counted by variant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layers/l2/expand.h"
#include "layers/l2/ir.h"

namespace l3c::l1 {

struct UpdateVariant {
  std::vector<std::string> frozen;  // layers, sorted
  l2::Form update;

  bool Freezes(const l2::Parameter& parameter) const;
};

struct UpdatePlan {
  std::vector<UpdateVariant> variants;  // at least one; of several models: one
  std::vector<size_t> variant_of_phase;
  std::vector<std::string> steps;  // by model: its counter of steps
  // By model, then variant: what its message does.
  std::vector<std::vector<l2::UpdateGraph>> graphs;
  std::map<std::string, std::string> role_owners;  // UpdatePlace

  // State of all variants of a model, each field once, without the counter of steps.
  std::vector<l2::UpdateStateField> StateOf(size_t model) const;
};

// `methods`: those of the first model, with the phases that are trained. `forward`: in training.
// `total_steps`: of all phases.
UpdatePlan PlanUpdates(const l2::Module& module, const l2::Methods& methods,
                       const l2::ForwardGraph& forward, int64_t total_steps);

// The parameters of one model.
std::vector<l2::Parameter> ParametersOf(const l2::ForwardGraph& forward, size_t model);

}  // namespace l3c::l1
