// L3 → L2: the method by search. layers/search/lowering.h has the pattern, docs/l2.md the idea.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "layers/l2/ir.h"
#include "layers/l2/priors.h"
#include "layers/l3/ir.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// Seconds of one training step of the method's whole plan; nothing when it cannot be placed.
using StepSimulator = std::function<std::optional<double>(const Module& module)>;

struct LowerConstraints {
  // Where given, the best few are ordered by predicted steps times this. What is forced is not.
  StepSimulator simulate;

  // Null: the reference machine of the priors, the same everywhere.
  const search::StepTimeEstimator* estimator = nullptr;
  const Priors* priors = nullptr;  // null: cost/priors.json
  // Samples of the train split, where the caller knows them: of few, more epochs are usual.
  std::optional<int64_t> rows;
  // Of a pareto goal: the point of its front to train for, from 1 (front.h); none: the middle.
  std::optional<size_t> pick;
};

// `spec` must have passed l3::Verify; it is simplified first (l3/simplify.h). The candidates are
// complete, verified modules, best first: LoweringOptions::budget.top of them in mode egraph, one
// in the others.
//
// Several models are searched one after the other, in the order of their declarations; those that
// follow take the first one's sample and phases. A goal of pareto becomes the point that is picked.
//
// Annotations of the model that are taken: #[l2::sample(FORM)], #[l2::update(FORM)],
// #[l2::backward(FORM)]; before a term of a loss, #[l2::loss(FORM)].
search::LoweringResult<Module> LowerToL2(const l3::Module& spec,
                                         const LowerConstraints& constraints,
                                         const search::LoweringOptions& options);

}  // namespace l3c::l2
