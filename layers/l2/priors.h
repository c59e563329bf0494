// Convergence priors and the reference machine: cost/priors.json, compiled into the library.
//
// The file says what each figure means and where it comes from. All factors multiply the steps that
// training takes to reach a target; 1 is the best choice of a group.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/stage.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// A choice that is a form; an absent form is the choice to have none.
struct FormPrior {
  std::string label;  // "gelu", "norm(layer)", "none"
  std::optional<Form> form;
  double factor = 1;
};

struct OptimizerPrior {
  std::string name;
  std::vector<double> rates;
  std::vector<Form> forms;  // by learning rate
  double factor = 1;
  double best_rate = 0;
  std::optional<double> settling_steps;
};

struct DecayPrior {
  std::string name;
  double factor = 1;
};

struct Priors {
  // Reference machine.
  double contraction_flops_per_second = 0;
  double elementwise_flops_per_second = 0;
  double bytes_per_second = 0;
  double seconds_per_launch = 0;

  double base_steps = 0;
  std::vector<double> depth_factors;  // by stages − 1
  int64_t min_width = 0;
  int64_t max_width = 0;
  double width_scale = 0;
  double width_per_octave = 0;
  std::array<double, kStageKinds> kind_factors = {};  // by StageKind
  int64_t max_channels = 0;
  double mean_readout = 1;
  std::vector<FormPrior> norms;
  std::vector<FormPrior> activations;
  std::vector<int64_t> batches;
  double noise_scale = 0;
  std::vector<OptimizerPrior> optimizers;
  double rate_curvature = 0;
  std::vector<int64_t> warmups;
  double warmup_gain = 0;
  double warmup_idle = 0;
  std::vector<DecayPrior> decays;
  std::vector<FormPrior> losses;
  std::vector<int64_t> epochs;
  int64_t usual_epochs = 0;
  int64_t least_updates = 0;  // optimiser steps that the usual epochs are to make
  int64_t usual_batch = 0;    // rows of such a step
  double epochs_per_octave = 0;
};

// Throws std::runtime_error naming the entry that is missing or wrong, or that names no sources.
Priors ParsePriors(std::string_view json);
// Those of cost/priors.json.
const Priors& BuiltinPriors();

// Seconds of a piece of a step on the reference machine: each kind of work at its own rate, one
// after another.
class ReferenceMachine : public search::StepTimeEstimator {
 public:
  explicit ReferenceMachine(const Priors& priors) : priors_(&priors) {}
  double Seconds(const search::StepWork& work) const override;
  std::string_view evidence() const override { return "prior"; }

 private:
  const Priors* priors_;
};

}  // namespace l3c::l2
