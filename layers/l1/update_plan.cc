#include "layers/l1/update_plan.h"

#include <algorithm>
#include <utility>

#include "layers/l2/form.h"
#include "layers/l2/updates.h"

namespace l3c::l1 {
namespace {

void FindVariants(const l2::Methods& methods, UpdatePlan& plan) {
  for (const l2::Phase& phase : methods.phases) {
    UpdateVariant variant;
    variant.frozen = phase.frozen;
    std::sort(variant.frozen.begin(), variant.frozen.end());
    variant.update = phase.update.empty() ? methods.update : phase.update[0];
    const auto same = [&](const UpdateVariant& other) {
      return other.frozen == variant.frozen && l2::SameForm(other.update, variant.update);
    };
    const auto at = std::find_if(plan.variants.begin(), plan.variants.end(), same);
    plan.variant_of_phase.push_back(static_cast<size_t>(at - plan.variants.begin()));
    if (at == plan.variants.end()) plan.variants.push_back(std::move(variant));
  }
}

// The first update that keeps something in a role gives it its plain name.
void FindRoleOwners(UpdatePlan& plan) {
  for (const UpdateVariant& variant : plan.variants) {
    for (const l2::Form* link : l2::UpdateChain(variant.update)) {
      for (const std::string& role : l2::FindUpdate(link->name)->state(*link)) {
        plan.role_owners.try_emplace(role, link->name);
      }
    }
  }
}

std::string CounterOf(size_t variant) { return "step_" + std::to_string(variant + 1); }

// The variants whose steps the leaf's state of a parameter has seen, where it counts them.
std::vector<size_t> HistoryOf(const UpdatePlan& plan, const l2::Parameter& parameter,
                              const std::string& leaf) {
  std::vector<size_t> history;
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    if (plan.variants[v].Freezes(parameter)) continue;
    if (l2::UpdateChain(plan.variants[v].update).back()->name == leaf) history.push_back(v);
  }
  return history;
}

// The places of one model's updates, by variant.
std::vector<l2::UpdatePlace> PlacesOf(const UpdatePlan& plan,
                                      const std::vector<l2::Parameter>& parameters) {
  std::vector<l2::UpdatePlace> places(plan.variants.size());
  std::vector<bool> counted(plan.variants.size());
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    l2::UpdatePlace& place = places[v];
    place.role_owners = plan.role_owners;
    const std::string& leaf = l2::UpdateChain(plan.variants[v].update).back()->name;
    const bool counts = l2::FindUpdate(leaf)->counts_history;
    place.history.resize(parameters.size());
    for (size_t p = 0; p < parameters.size(); ++p) {
      place.frozen.push_back(plan.variants[v].Freezes(parameters[p]));
      if (!counts || place.frozen.back()) continue;
      const std::vector<size_t> history = HistoryOf(plan, parameters[p], leaf);
      if (history.size() == plan.variants.size()) continue;  // all steps
      for (size_t u : history) {
        place.history[p].push_back(CounterOf(u));
        counted[u] = true;
      }
    }
  }
  for (size_t v = 0; v < places.size(); ++v) {
    if (counted[v]) places[v].counters.push_back(CounterOf(v));
  }
  return places;
}

}  // namespace

bool UpdateVariant::Freezes(const l2::Parameter& parameter) const {
  return std::any_of(frozen.begin(), frozen.end(), [&](const std::string& layer) {
    return parameter.name.starts_with(layer + "_");
  });
}

std::vector<l2::UpdateStateField> UpdatePlan::StateOf(size_t model) const {
  std::vector<l2::UpdateStateField> all;
  for (const l2::UpdateGraph& graph : graphs[model]) {
    for (const l2::UpdateStateField& field : graph.state) {
      const auto same = [&](const l2::UpdateStateField& f) { return f.name == field.name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(field);
    }
  }
  return all;
}

UpdatePlan PlanUpdates(const l2::Module& module, const l2::Methods& methods,
                       const l2::ForwardGraph& forward, int64_t total_steps) {
  UpdatePlan plan;
  FindVariants(methods, plan);
  const bool alone = module.methods.size() == 1;
  if (alone) FindRoleOwners(plan);
  for (size_t m = 0; m < module.methods.size(); ++m) {
    const std::vector<l2::Parameter> parameters = ParametersOf(forward, m);
    // A model that two turns change is updated twice in every step.
    int64_t updates = 0;
    for (const l2::TurnNodes& turn : forward.turns) {
      updates += std::any_of(turn.parameters.begin(), turn.parameters.end(),
                             [&](size_t p) { return forward.parameter_models[p] == m; });
    }
    const int64_t total = total_steps * std::max<int64_t>(updates, 1);
    // A graph may read the steps of several models.
    const bool read_apart =
        m != forward.clock && l2::EvaluationUpdate(module.methods[m].update) != nullptr;
    plan.steps.push_back(read_apart ? module.methods[m].model + "_step" : "step");
    std::vector<l2::UpdatePlace> places =
        alone ? PlacesOf(plan, parameters) : std::vector<l2::UpdatePlace>(1);
    std::vector<l2::UpdateGraph>& graphs = plan.graphs.emplace_back();
    for (size_t v = 0; v < places.size(); ++v) {
      places[v].step = plan.steps[m];
      const l2::Form& update = alone ? plan.variants[v].update : module.methods[m].update;
      graphs.push_back(l2::ExpandUpdate(update, parameters, total, tensor::DType::kF32, places[v]));
    }
  }
  return plan;
}

std::vector<l2::Parameter> ParametersOf(const l2::ForwardGraph& forward, size_t model) {
  std::vector<l2::Parameter> parameters;
  for (size_t p = 0; p < forward.parameters.size(); ++p) {
    if (forward.parameter_models[p] == model) parameters.push_back(forward.parameters[p]);
  }
  return parameters;
}

}  // namespace l3c::l1
