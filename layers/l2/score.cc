#include "layers/l2/score.h"

#include <algorithm>
#include <cmath>

#include "layers/l2/form.h"
#include "layers/l2/infer_methods.h"
#include "layers/l2/layers.h"
#include "layers/l2/symmetry.h"
#include "layers/l2/updates.h"

namespace l3c::l2 {
namespace {

constexpr double kF32Bytes = 4;

void AddTo(LayerWork& sum, const LayerWork& part) {
  sum.parameters += part.parameters;
  sum.activation_bytes += part.activation_bytes;
  sum.per_sample += part.per_sample;
  sum.per_step += part.per_step;
}

search::StepWork Times(search::StepWork work, double factor) {
  work.contraction_flops *= factor;
  work.elementwise_flops *= factor;
  work.bytes *= factor;
  work.launches *= factor;
  return work;
}

double Octaves(double a, double b) { return std::abs(std::log2(a / b)); }

}  // namespace

Scorer::Scorer(const Space& space, const search::StepTimeEstimator& estimator)
    : space_(space), estimator_(estimator) {
  if (!space.actions.empty()) {
    copies_ = static_cast<double>(ActionsOf(space.actions, space.action_axis).size());
  }
  for (const OptimizerPrior& optimizer : space.priors.optimizers) {
    const Form& form = optimizer.forms.front();
    update_work_.push_back(EstimateUpdate(form));
    double fields = 0;
    for (const Form* link : UpdateChain(form)) {
      fields += static_cast<double>(FindUpdate(link->name)->state(*link).size());
    }
    state_fields_.push_back(fields);
  }
}

void Scorer::AddWork(const LayerWork& forward, double times, Piece& piece) const {
  LayerWork repeated = forward;
  repeated.activation_bytes *= times;
  repeated.per_sample = Times(forward.per_sample, times);
  repeated.per_step = Times(forward.per_step, times);
  AddTo(piece.work, WithBackward(repeated));
  piece.latency += ForwardLatency(repeated, space_.priors);
}

void Scorer::AddLayer(const Form& form, Shape& shape, Piece& piece) const {
  const LayerEntry& entry = *FindLayer(form.name);
  const std::vector<Shape> operands = {shape};
  AddWork(EstimateLayer(entry, form, operands), copies_, piece);
  std::string error;
  shape = *entry.shape(form, operands, &error);
}

void Scorer::AddItem(const InferForm& item, Shape& shape, Piece& piece) const {
  if (item.kind == InferForm::Kind::kLayer) return AddLayer(item.written[0], shape, piece);
  if (item.kind != InferForm::Kind::kCall) {
    for (const InferForm& inner : item.items) {
      AddItem(inner, shape, piece);
      if (item.kind != InferForm::Kind::kResidual) continue;
      const LayerEntry& add = *FindLayer("add");
      const std::vector<Shape> operands = {shape, shape};
      AddWork(EstimateLayer(add, MakeForm(add.form, {}), operands), copies_, piece);
    }
    return;
  }
  InferForm form = item;
  InferBuilder builder;
  support::Diagnostics none;
  const uint32_t input = builder.input();
  const auto output = InferLowering(builder, none).Lower(form, input);
  InferGraph network = builder.Finish(*output, std::move(form));
  PropagateShapes(network, shape, none);
  for (uint32_t i = 1; i < network.nodes.size(); ++i) {
    AddWork(EstimateNode(network, i), copies_, piece);
  }
  shape = network.nodes[network.output].shape;
}

void Scorer::AddActions(const Shape& result, Piece& piece) const {
  if (space_.actions.empty()) return;
  const std::vector<Shape> input = {space_.input};
  for (const Form& action : ActionsOf(space_.actions, space_.action_axis)) {
    AddWork(EstimateLayer(*FindLayer(action.name), action, input), 1, piece);
  }
  const LayerEntry& mean = *FindLayer("mean_of_actions");
  const Form form = MakeForm(mean.form, {{"group", space_.actions}, {"axis", space_.action_axis}});
  AddWork(EstimateLayer(mean, form, std::vector<Shape>(static_cast<size_t>(copies_), result)), 1,
          piece);
}

double Scorer::KindLog(const Extent& in, StageKind kind) const {
  const Priors& p = space_.priors;
  // Dense stages are the ordinary thing where there are no positions to lose.
  if (kind == StageKind::kDense && in.positions() == 1) return 0;
  double log = std::log(p.kind_factors[static_cast<size_t>(kind)]);
  // At every position of a sequence it sees no other, skip or not.
  if (kind == StageKind::kResidual && in.positions() > 1) {
    log += std::log(p.kind_factors[static_cast<size_t>(StageKind::kPointwise)]);
  }
  return log;
}

double Scorer::WidthLog(bool first, const Extent& in, const HiddenStage& stage) const {
  const Priors& p = space_.priors;
  if (stage.kind == StageKind::kAttention) return 0;
  const double w = static_cast<double>(space_.widths[stage.width]);
  const bool flattens = stage.kind == StageKind::kDense && in.positions() > 1;
  if (first || flattens) {
    const int64_t seen = stage.kind == StageKind::kDense ? in.elements() : in.channels;
    const double share = p.width_scale * std::sqrt(static_cast<double>(seen)) / w;
    return std::log1p(share * share);
  }
  return Octaves(w, static_cast<double>(in.channels)) * std::log(p.width_per_octave);
}

double Scorer::ActivationLog(const HiddenStage& stage) const {
  if (!HasActivation(stage.kind)) return 0;
  return std::log(space_.priors.activations[stage.activation].factor);
}

const Piece& Scorer::Embedding(size_t width) const {
  auto [it, fresh] = embedding_.try_emplace(width);
  Piece& piece = it->second;
  if (!fresh) return piece;
  const int64_t w = space_.widths[width];
  const double share = space_.priors.width_scale *
                       std::sqrt(static_cast<double>(space_.vocabulary)) / static_cast<double>(w);
  piece.log_steps = std::log1p(share * share);
  Shape shape = space_.input;
  for (const Form& layer : EmbedForms(space_.vocabulary, space_.extent.rows, w, space_.placed)) {
    AddLayer(layer, shape, piece);
  }
  return piece;
}

const Piece& Scorer::Hidden(bool first, const Extent& in, const HiddenStage& stage) const {
  const auto key = std::tuple(first, in, stage.kind, stage.width, stage.norm, stage.activation);
  auto [it, fresh] = hidden_.try_emplace(key);
  Piece& piece = it->second;
  if (!fresh) return piece;
  const Priors& p = space_.priors;
  piece.log_steps = WidthLog(first, in, stage) + KindLog(in, stage.kind);
  piece.log_steps += std::log(p.norms[stage.norm].factor);
  piece.log_steps += ActivationLog(stage);
  const bool dense = stage.kind == StageKind::kDense;
  Shape shape = dense ? Shape{in.elements()} : in.shape();
  if (stage.kind == StageKind::kLine) shape = {in.rows, in.channels};
  for (const InferForm& item :
       StageItems(stage.kind, in, space_.widths[stage.width], p.norms[stage.norm].form,
                  p.activations[stage.activation].form, space_.causal)) {
    AddItem(item, shape, piece);
  }
  return piece;
}

const Piece& Scorer::Output(size_t hidden, const Extent& in, Readout readout) const {
  auto [it, fresh] = output_.try_emplace(std::tuple(hidden, in, readout));
  Piece& piece = it->second;
  if (!fresh) return piece;
  piece.log_steps = std::log(space_.priors.depth_factors[hidden]);
  if (readout == Readout::kMean) piece.log_steps += std::log(space_.priors.mean_readout);
  const bool flattens = readout == Readout::kFlat || readout == Readout::kUnfold;
  Shape shape = flattens ? Shape{in.elements()} : in.shape();
  for (const Form& layer : ReadoutForms(readout, in, space_.outputs, space_.out_rows)) {
    AddLayer(layer, shape, piece);
  }
  AddActions(shape, piece);
  if (space_.distribution) {
    const LayerEntry& softmax = *FindLayer("softmax");
    const std::vector<Shape> operands = {shape};
    AddWork(EstimateLayer(softmax, MakeForm(softmax.form, {}), operands), 1, piece);
  }
  return piece;
}

search::StepWork Scorer::StepOf(const LayerWork& work, int64_t batch, size_t optimizer) const {
  search::StepWork step = Times(work.per_sample, static_cast<double>(batch));
  step += work.per_step;
  step += Times(update_work_[optimizer], static_cast<double>(work.parameters));
  return step;
}

double Scorer::Seconds(const LayerWork& work, int64_t batch, size_t optimizer) const {
  return estimator_.Seconds(StepOf(work, batch, optimizer));
}

double Scorer::BatchLog(size_t batch) const {
  return std::log1p(space_.priors.noise_scale / static_cast<double>(space_.priors.batches[batch]));
}

double Scorer::OptimizerLog(size_t optimizer) const {
  return std::log(space_.priors.optimizers[optimizer].factor);
}

double Scorer::RateLog(size_t optimizer, size_t rate) const {
  const OptimizerPrior& prior = space_.priors.optimizers[optimizer];
  const double decades = std::log10(prior.rates[rate] / prior.best_rate);
  return std::log1p(space_.priors.rate_curvature * decades * decades);
}

double Scorer::WarmupLog(size_t optimizer, size_t warmup) const {
  const double steps = static_cast<double>(space_.priors.warmups[warmup]);
  if (steps == 0) return 0;
  const auto& settling = space_.priors.optimizers[optimizer].settling_steps;
  if (!settling) return std::log(space_.priors.warmup_idle);
  const double decades = std::abs(std::log10(steps / *settling));
  return std::log(1 - space_.priors.warmup_gain * std::max(0.0, 1 - decades));
}

double Scorer::DecayLog(size_t decay) const { return std::log(space_.priors.decays[decay].factor); }
double Scorer::LossLog(size_t loss) const { return std::log(space_.priors.losses[loss].factor); }

double Scorer::EpochsLog(size_t epochs) const {
  return Octaves(static_cast<double>(space_.priors.epochs[epochs]),
                 static_cast<double>(space_.priors.usual_epochs)) *
         std::log(space_.priors.epochs_per_octave);
}

Score Scorer::Evaluate(const Choice& choice) const {
  Score score;
  const Priors& p = space_.priors;
  const int64_t batch = p.batches[choice.batch];
  LayerWork total;
  double stages = 0;
  double kinds = 0, widths = 0, norms = 0, activations = 0;
  auto add = [&](const Piece& piece) {
    stages += piece.log_steps;
    score.step_seconds += Seconds(piece.work, batch, choice.optimizer);
    AddTo(total, piece.work);
    score.latency += piece.latency;
  };
  const std::vector<Extent> extents = ExtentsOf(space_, choice);
  if (space_.tokens) {
    widths += Embedding(choice.embed).log_steps;
    add(Embedding(choice.embed));
  }
  for (size_t i = 0; i < choice.hidden.size(); ++i) {
    const HiddenStage& stage = choice.hidden[i];
    const bool first = i == 0 && !space_.tokens;
    kinds += KindLog(extents[i], stage.kind);
    widths += WidthLog(first, extents[i], stage);
    norms += std::log(p.norms[stage.norm].factor);
    activations += ActivationLog(stage);
    add(Hidden(first, extents[i], stage));
  }
  const Piece& output = Output(choice.hidden.size(), extents.back(), choice.readout);
  add(output);
  double losses = 0;
  for (size_t loss : choice.losses) losses += LossLog(loss);
  score.log_terms = {{"depth", output.log_steps},
                     {"kind", kinds},
                     {"width", widths},
                     {"norm", norms},
                     {"activation", activations},
                     {"batch", BatchLog(choice.batch)},
                     {"optimizer", OptimizerLog(choice.optimizer)},
                     {"learning rate", RateLog(choice.optimizer, choice.rate)},
                     {"warm-up", WarmupLog(choice.optimizer, choice.warmup)},
                     {"decay", DecayLog(choice.decay)},
                     {"loss", losses},
                     {"epochs", EpochsLog(choice.epochs)}};
  double log_steps = stages;
  for (size_t i = 5; i < score.log_terms.size(); ++i) log_steps += score.log_terms[i].second;
  score.steps = p.base_steps * std::exp(log_steps);
  score.parameters = total.parameters;
  score.bytes =
      kF32Bytes * static_cast<double>(total.parameters) * (2 + state_fields_[choice.optimizer]) +
      static_cast<double>(batch) * total.activation_bytes;
  const search::StepWork step = StepOf(total, batch, choice.optimizer);
  search::StepWork part;
  part.contraction_flops = step.contraction_flops;
  score.second_terms.emplace_back("contractions", estimator_.Seconds(part));
  part = {};
  part.elementwise_flops = step.elementwise_flops;
  score.second_terms.emplace_back("elementwise", estimator_.Seconds(part));
  part = {};
  part.bytes = step.bytes;
  score.second_terms.emplace_back("memory traffic", estimator_.Seconds(part));
  part = {};
  part.launches = step.launches;
  score.second_terms.emplace_back("launches", estimator_.Seconds(part));
  return score;
}

search::CostVector Scorer::Cost(const Score& score) const {
  const std::string seconds(estimator_.evidence());
  return {{"time_to_target", score.time_to_target(), "s", "prior"},
          {"bytes", score.bytes, "B", "analytical"},
          {"steps", score.steps, "", "prior"},
          {"step_time", score.step_seconds, "s", seconds},
          {"parameters", static_cast<double>(score.parameters), "", "analytical"}};
}

std::string Scorer::DecidedBy(const Score& winner, const Score& loser) const {
  if (loser.time_to_target() == winner.time_to_target()) {
    return loser.bytes != winner.bytes ? "bytes" : "the fixed order";
  }
  auto most = [](const auto& a, const auto& b) {
    size_t best = 0;
    for (size_t i = 1; i < a.size(); ++i) {
      if (b[i].second - a[i].second > b[best].second - a[best].second) best = i;
    }
    return a[best].first;
  };
  const double steps = std::log(loser.steps / winner.steps);
  const double seconds = std::log(loser.step_seconds / winner.step_seconds);
  return steps >= seconds ? "steps: " + most(winner.log_terms, loser.log_terms)
                          : "step_time: " + most(winner.second_terms, loser.second_terms);
}

bool Better(const Score& a, const Choice& choice_a, const Score& b, const Choice& choice_b) {
  if (a.time_to_target() != b.time_to_target()) return a.time_to_target() < b.time_to_target();
  if (a.bytes != b.bytes) return a.bytes < b.bytes;
  return Before(choice_a, choice_b);
}

}  // namespace l3c::l2
