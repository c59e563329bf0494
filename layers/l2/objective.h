// What the training of a model minimises: the terms of the goal's loss, with each reference taken
// apart and each target's kind found, so that losses can be chosen, checked and expanded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l2/ir.h"
#include "layers/l2/losses.h"

namespace l3c::l2 {

struct ObjectiveTerm {
  const l3::Term* term = nullptr;
  double weight = 1;  // negative where the goal maximises
  // Terms that compare the model's output with a field:
  bool has_loss = false;  // L2 chooses which loss; index into Methods::losses follows order
  TargetKind target_kind = TargetKind::kTensor;
  l3::Ref target;  // a field
  // Norms:
  bool of_parameters = false;  // else of the output, row by row
};

struct Objective {
  const l3::Model* model = nullptr;
  const l3::Loss* loss = nullptr;
  std::vector<ObjectiveTerm> terms;
};

// Classes of a distribution, or of the distributions of a sequence; 0 for any other domain.
int64_t ClassesOf(const l3::Domain& out);

// For `model`, which must exist. Forms of L3 that L2 cannot train yet are reported, each with what
// is supported; then nothing is returned. Pointers are into `spec`.
std::optional<Objective> ResolveObjective(const l3::Module& spec, const std::string& model,
                                          support::Diagnostics& diagnostics);

// The default loss of every term that leaves a choice.
std::vector<LossChoice> DefaultLosses(const Objective& objective);

}  // namespace l3c::l2
