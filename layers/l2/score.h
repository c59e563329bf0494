// What a candidate is predicted to cost: steps to the target, from the priors, times the time of a
// step, from the work of its layers.
//
//   steps  = base · Π factors                     (cost/priors.json has each factor's meaning)
//   time   = Σ over stages of the estimator's seconds for forward, backward and update
//   score  = steps · time
//
// log steps, time and parameters add up over the stages, which is what extraction needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "layers/l2/candidate.h"
#include "layers/l2/estimate.h"
#include "layers/search/lowering.h"

namespace l3c::l2 {

// One stage: its share of log steps, and its work.
struct Piece {
  double log_steps = 0;
  LayerWork work;      // forward and backward
  double latency = 0;  // seconds of the forward pass of one sample, on the reference machine
};

struct Score {
  double steps = 0;
  double step_seconds = 0;
  double bytes = 0;  // parameters, gradients, optimiser state and activations of one step
  int64_t parameters = 0;
  double latency = 0;  // as a Piece's
  double time_to_target() const { return steps * step_seconds; }

  // What the two factors are made of, for explanations: natural logarithms of the step factors, and
  // seconds of each kind of work.
  std::vector<std::pair<std::string, double>> log_terms;
  std::vector<std::pair<std::string, double>> second_terms;
};

class Scorer {
 public:
  // Both must outlive the scorer.
  Scorer(const Space& space, const search::StepTimeEstimator& estimator);

  // The vectors of tokens, of that width (an index into Space::widths).
  const Piece& Embedding(size_t width) const;
  // A hidden stage that reads `in`; `first`: nothing before it but the input.
  const Piece& Hidden(bool first, const Extent& in, const HiddenStage& stage) const;
  // The output stage after `hidden` hidden stages, which reads `in`.
  const Piece& Output(size_t hidden, const Extent& in, Readout readout) const;
  // Seconds of a piece in a step of `batch` rows, its update by the optimiser included.
  double Seconds(const LayerWork& work, int64_t batch, size_t optimizer) const;

  double BatchLog(size_t batch) const;
  double OptimizerLog(size_t optimizer) const;
  double RateLog(size_t optimizer, size_t rate) const;
  double WarmupLog(size_t optimizer, size_t warmup) const;
  double DecayLog(size_t decay) const;
  double LossLog(size_t loss) const;
  double EpochsLog(size_t epochs) const;

  Score Evaluate(const Choice& choice) const;
  // Components in the order of comparison: time_to_target, bytes; then steps, step_time,
  // parameters.
  search::CostVector Cost(const Score& score) const;
  // The component, and the term inside it, that speaks most for `winner`.
  std::string DecidedBy(const Score& winner, const Score& loser) const;

 private:
  double KindLog(const Extent& in, StageKind kind) const;
  double WidthLog(bool first, const Extent& in, const HiddenStage& stage) const;
  double ActivationLog(const HiddenStage& stage) const;
  // Adds a layer or a network, leaving the shape of its result in `shape`.
  void AddLayer(const Form& form, Shape& shape, Piece& piece) const;
  void AddItem(const InferForm& item, Shape& shape, Piece& piece) const;
  // Adds one node's work, done so many times with the same parameters.
  void AddWork(const LayerWork& forward, double times, Piece& piece) const;
  // What the mean over a group's actions adds to the network: actions, mean.
  void AddActions(const Shape& result, Piece& piece) const;
  search::StepWork StepOf(const LayerWork& work, int64_t batch, size_t optimizer) const;

  const Space& space_;
  double copies_ = 1;  // of the network: one for each action
  const search::StepTimeEstimator& estimator_;
  std::vector<search::StepWork> update_work_;  // for each parameter, by optimiser
  std::vector<double> state_fields_;           // for each parameter, by optimiser
  mutable std::map<size_t, Piece> embedding_;
  mutable std::map<std::tuple<bool, Extent, StageKind, size_t, size_t, size_t>, Piece> hidden_;
  mutable std::map<std::tuple<size_t, Extent, Readout>, Piece> output_;
};

// Lower score, then fewer bytes, then the fixed order.
bool Better(const Score& a, const Choice& choice_a, const Score& b, const Choice& choice_b);

}  // namespace l3c::l2
