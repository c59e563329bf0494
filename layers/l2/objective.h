// What training minimises: the goal taken apart into turns, each turn's loss into terms, with each
// target's kind found, so that losses can be chosen, checked and expanded.
//
//   minimize(loss), maximize(loss)   one turn
//   alternate([…])                   its turns, one after the other in every step, on one batch;
//                                    each sees what those before it have changed
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l2/ir.h"
#include "layers/l2/losses.h"

namespace l3c::l2 {

struct ObjectiveTerm {
  // Null where the goal is a value itself, `minimize(energy.out)`: `predicted`, averaged over rows.
  const l3::Term* term = nullptr;
  double weight = 1;  // negative where the goal maximises
  // Divergence, reconstruction and contrastive: L2 chooses which loss, in the methods of the model
  // whose output is `predicted` (contrastive: the anchor), under the name `choice`.
  bool has_loss = false;
  std::string choice;
  TargetKind target_kind = TargetKind::kTensor;
  l3::Ref predicted;
  l3::Ref target;                   // a field or an output; contrastive: the positive
  std::optional<l3::Ref> negative;  // contrastive
};

struct Turn {
  std::string name;  // of what it minimises: "objective", "objective_ce"
  const l3::Goal* goal = nullptr;
  std::vector<ObjectiveTerm> terms;
  std::vector<std::string> reads;    // models that it depends on, in the order of declaration
  std::vector<std::string> updates;  // those whose parameters it changes
};

struct Objective {
  const l3::Model* model = nullptr;
  // Terms whose loss the methods of `model` choose, each once.
  std::vector<ObjectiveTerm> terms;
  std::vector<Turn> turns;  // of the whole goal
};

// For `model`, which must exist. Forms of L3 that cannot be trained are reported, each with what
// is supported; then nothing is returned. Pointers are into `spec`.
std::optional<Objective> ResolveObjective(const l3::Module& spec, const std::string& model,
                                          support::Diagnostics& diagnostics);
// The turns alone.
std::optional<std::vector<Turn>> ResolveTurns(const l3::Module& spec,
                                              support::Diagnostics& diagnostics);

// The default loss of every term that leaves a choice.
std::vector<LossChoice> DefaultLosses(const Objective& objective);

}  // namespace l3c::l2
