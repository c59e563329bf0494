#include "layers/l2/priors.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "layers/support/parser.h"
#include "layers/support/units.h"
#include "nlohmann/json.hpp"

namespace l3c::l2 {

extern const std::string_view kBuiltinPriorsText;

namespace {

using Json = nlohmann::json;

Form ReadForm(const std::string& text, Family family) {
  const support::SourceFile source("priors.json", text);
  support::Diagnostics diagnostics(&source);
  support::ParserBase parser(source, diagnostics);
  auto form = ParseForm(parser, family);
  if (!form || !parser.AtEnd()) {
    throw std::runtime_error("priors: '" + text + "' is no " + std::string(FamilyName(family)));
  }
  form->span = {};
  return std::move(*form);
}

// Factors count from the best choice of a group. None is below one: extraction adds logarithms and
// takes costs for positive.
double Factor(const Json& json) {
  const double value = json.at("factor").get<double>();
  if (!(value >= 1) || value > 1e30) throw std::runtime_error("priors: a factor is below 1");
  return value;
}

double Positive(const Json& json, const char* key) {
  const double value = json.at(key).get<double>();
  if (!(value > 0) || value > 1e30) {
    throw std::runtime_error("priors: '" + std::string(key) + "' must be positive");
  }
  return value;
}

std::vector<FormPrior> ReadChoices(const Json& group, Family family) {
  std::vector<FormPrior> choices;
  for (const Json& choice : group.at("choices")) {
    FormPrior prior;
    prior.label = choice.at("form").get<std::string>();
    prior.factor = Factor(choice);
    if (prior.label != "none") {
      prior.form = ReadForm(prior.label, family);
      prior.label = PrintForm(*prior.form, family);
    }
    choices.push_back(std::move(prior));
  }
  return choices;
}

std::vector<OptimizerPrior> ReadOptimizers(const Json& group) {
  std::vector<OptimizerPrior> all;
  for (const Json& choice : group.at("choices")) {
    OptimizerPrior prior;
    prior.name = choice.at("name").get<std::string>();
    prior.factor = Factor(choice);
    prior.best_rate = Positive(choice, "best");
    if (choice.contains("settling_steps"))
      prior.settling_steps = Positive(choice, "settling_steps");
    for (const Json& rate : choice.at("lr")) {
      prior.rates.push_back(rate.get<double>());
      std::string form = choice.at("form").get<std::string>();
      const std::string hole = "$lr";
      const size_t at = form.find(hole);
      if (at == std::string::npos) throw std::runtime_error("priors: an optimizer lacks '$lr'");
      form.replace(at, hole.size(), support::PrintReal(prior.rates.back()));
      prior.forms.push_back(ReadForm(form, Family::kUpdate));
    }
    all.push_back(std::move(prior));
  }
  return all;
}

// Whatever ranks candidates names where it comes from.
void CheckSources(const Json& json) {
  for (const auto& [name, group] : json.items()) {
    // The reference machine and the common factor rank nothing.
    if (!group.is_object() || name == "machine" || name == "steps") continue;
    const auto sources = group.find("sources");
    if (group.contains("basis") && sources != group.end() && sources->is_array() &&
        !sources->empty()) {
      continue;
    }
    throw std::runtime_error("priors: '" + name + "' names no basis or no sources");
  }
}

}  // namespace

Priors ParsePriors(std::string_view text) {
  Priors p;
  try {
    const Json json = Json::parse(text);
    CheckSources(json);
    const Json& machine = json.at("machine");
    p.contraction_flops_per_second = Positive(machine, "contraction_flops_per_second");
    p.elementwise_flops_per_second = Positive(machine, "elementwise_flops_per_second");
    p.bytes_per_second = Positive(machine, "bytes_per_second");
    p.seconds_per_launch = Positive(machine, "seconds_per_launch");
    p.base_steps = Positive(json.at("steps"), "base");
    p.depth_factors = json.at("depth").at("factors").get<std::vector<double>>();
    const Json& width = json.at("width");
    p.min_width = width.at("min").get<int64_t>();
    p.max_width = width.at("max").get<int64_t>();
    p.width_scale = Positive(width, "scale");
    p.width_per_octave = Positive(width, "per_octave");
    const Json& kind = json.at("kind");
    for (size_t k = 0; k < kStageKinds; ++k) {
      const std::string name(StageKindName(static_cast<StageKind>(k)));
      p.kind_factors[k] = Positive(kind.at("factors"), name.c_str());
    }
    p.max_channels = kind.at("max_channels").get<int64_t>();
    p.mean_readout = std::max(1.0, Positive(json.at("readout"), "mean"));
    p.norms = ReadChoices(json.at("norm"), Family::kLayer);
    p.activations = ReadChoices(json.at("activation"), Family::kLayer);
    p.batches = json.at("batch").at("choices").get<std::vector<int64_t>>();
    p.noise_scale = Positive(json.at("batch"), "noise_scale");
    p.optimizers = ReadOptimizers(json.at("optimizer"));
    p.rate_curvature = Positive(json.at("optimizer"), "lr_curvature");
    const Json& warmup = json.at("warmup");
    p.warmups = warmup.at("choices").get<std::vector<int64_t>>();
    p.warmup_gain = Positive(warmup, "gain");
    p.warmup_idle = Positive(warmup, "idle");
    for (const Json& choice : json.at("decay").at("choices")) {
      p.decays.push_back({choice.at("name").get<std::string>(), Factor(choice)});
    }
    p.losses = ReadChoices(json.at("loss"), Family::kLoss);
    const Json& epochs = json.at("epochs");
    p.epochs = epochs.at("choices").get<std::vector<int64_t>>();
    p.usual_epochs = epochs.at("usual").get<int64_t>();
    p.epochs_per_octave = Positive(epochs, "per_octave");
    const Json& updates = json.at("updates");
    p.least_updates = updates.at("least").get<int64_t>();
    p.usual_batch = updates.at("batch").get<int64_t>();
  } catch (const Json::exception& error) {
    throw std::runtime_error(std::string("priors: ") + error.what());
  }
  const bool positive_lists =
      std::all_of(p.batches.begin(), p.batches.end(), [](int64_t b) { return b > 0; }) &&
      std::all_of(p.epochs.begin(), p.epochs.end(), [](int64_t e) { return e > 0; }) &&
      std::all_of(p.warmups.begin(), p.warmups.end(), [](int64_t w) { return w >= 0; }) &&
      std::all_of(p.depth_factors.begin(), p.depth_factors.end(),
                  [](double f) { return f >= 1; }) &&
      std::all_of(p.kind_factors.begin(), p.kind_factors.end(), [](double f) { return f >= 1; });
  if (!positive_lists || p.depth_factors.empty() || p.norms.empty() || p.activations.empty() ||
      p.batches.empty() || p.optimizers.empty() || p.warmups.empty() || p.decays.empty() ||
      p.losses.empty() || p.epochs.empty() || p.min_width < 1 || p.max_width < p.min_width ||
      p.usual_epochs < 1 || p.least_updates < 1 || p.usual_batch < 1 || p.warmup_gain >= 1) {
    throw std::runtime_error("priors: a list is empty or a figure is out of range");
  }
  return p;
}

const Priors& BuiltinPriors() {
  static const Priors priors = ParsePriors(kBuiltinPriorsText);
  return priors;
}

double ReferenceMachine::Seconds(const search::StepWork& work) const {
  return work.contraction_flops / priors_->contraction_flops_per_second +
         work.elementwise_flops / priors_->elementwise_flops_per_second +
         work.bytes / priors_->bytes_per_second + work.launches * priors_->seconds_per_launch;
}

}  // namespace l3c::l2
