#include "layers/l2/candidate.h"

#include <algorithm>
#include <tuple>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/losses.h"
#include "layers/l2/methods.h"
#include "layers/l2/updates.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using support::PrintInteger;
using support::PrintReal;

std::string LayerId(const Space& space, size_t stage, std::string_view what) {
  return "l2/" + space.model->name + "/layer" + std::to_string(stage + 1) + "." + std::string(what);
}

std::vector<std::string> WidthLabels(const Space& space) {
  std::vector<std::string> labels;
  for (int64_t w : space.widths) labels.push_back(PrintInteger(w));
  return labels;
}

std::vector<std::string> FormLabels(const std::vector<FormPrior>& priors) {
  std::vector<std::string> labels;
  for (const FormPrior& prior : priors) labels.push_back(prior.label);
  return labels;
}

std::vector<std::string> IntegerLabels(const std::vector<int64_t>& values) {
  std::vector<std::string> labels;
  for (int64_t v : values) labels.push_back(PrintInteger(v));
  return labels;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Decisions(const Space& space,
                                                           const Choice& choice) {
  const Priors& p = space.priors;
  const std::string prefix = "l2/" + space.model->name + "/";
  std::vector<std::pair<std::string, std::string>> all;
  all.emplace_back(prefix + "depth", std::to_string(choice.hidden.size() + 1));
  for (size_t i = 0; i < choice.hidden.size(); ++i) {
    const HiddenStage& stage = choice.hidden[i];
    all.emplace_back(LayerId(space, i, "width"), PrintInteger(space.widths[stage.width]));
    all.emplace_back(LayerId(space, i, "norm"), p.norms[stage.norm].label);
    all.emplace_back(LayerId(space, i, "activation"), p.activations[stage.activation].label);
  }
  all.emplace_back(prefix + "sample.batch", PrintInteger(p.batches[choice.batch]));
  if (!space.fixed_update) {
    all.emplace_back(prefix + "update.optimizer", p.optimizers[choice.optimizer].name);
    all.emplace_back(prefix + "update.lr",
                     PrintReal(p.optimizers[choice.optimizer].rates[choice.rate]));
    all.emplace_back(prefix + "update.warmup", PrintInteger(p.warmups[choice.warmup]));
    all.emplace_back(prefix + "update.decay", p.decays[choice.decay].name);
  }
  for (size_t t = 0; t < choice.losses.size(); ++t) {
    all.emplace_back(prefix + "loss." + space.loss_terms[t], p.losses[choice.losses[t]].label);
  }
  all.emplace_back(prefix + "phases.epochs", PrintInteger(p.epochs[choice.epochs]));
  return all;
}

std::optional<std::vector<std::string>> Labels(const Space& space, const std::string& id) {
  const Priors& p = space.priors;
  const std::string prefix = "l2/" + space.model->name + "/";
  if (!id.starts_with(prefix)) return std::nullopt;
  const std::string_view what = std::string_view(id).substr(prefix.size());
  std::vector<std::string> labels;
  if (what == "depth") {
    for (int64_t d = 1; d <= space.max_stages; ++d) labels.push_back(std::to_string(d));
    return labels;
  }
  for (int64_t i = 0; i + 1 < space.max_stages; ++i) {
    const size_t stage = static_cast<size_t>(i);
    if (id == LayerId(space, stage, "width")) return WidthLabels(space);
    if (id == LayerId(space, stage, "norm")) return FormLabels(p.norms);
    if (id == LayerId(space, stage, "activation")) return FormLabels(p.activations);
  }
  if (what == "sample.batch") return IntegerLabels(p.batches);
  if (what == "phases.epochs") return IntegerLabels(p.epochs);
  if (!space.fixed_update) {
    if (what == "update.optimizer") {
      for (const OptimizerPrior& o : p.optimizers) labels.push_back(o.name);
      return labels;
    }
    if (what == "update.lr") {
      for (const OptimizerPrior& o : p.optimizers) {
        for (double rate : o.rates) {
          if (std::find(labels.begin(), labels.end(), PrintReal(rate)) == labels.end()) {
            labels.push_back(PrintReal(rate));
          }
        }
      }
      return labels;
    }
    if (what == "update.warmup") return IntegerLabels(p.warmups);
    if (what == "update.decay") {
      for (const DecayPrior& d : p.decays) labels.push_back(d.name);
      return labels;
    }
  }
  for (size_t t = 0; t < space.loss_terms.size(); ++t) {
    if (what != "loss." + space.loss_terms[t]) continue;
    for (size_t l : space.fitting_losses[t]) labels.push_back(p.losses[l].label);
    return labels;
  }
  return std::nullopt;
}

std::vector<std::string> AllDecisionIds(const Space& space) {
  Choice deepest;
  deepest.hidden.resize(static_cast<size_t>(space.max_stages - 1));
  for (const auto& fitting : space.fitting_losses) deepest.losses.push_back(fitting.front());
  std::vector<std::string> ids;
  for (auto& [id, label] : Decisions(space, deepest)) ids.push_back(id);
  return ids;
}

bool Restriction::Allows(const std::string& id, const std::string& label) const {
  if (auto it = required.find(id); it != required.end() && it->second != label) return false;
  auto it = excluded.find(id);
  return it == excluded.end() ||
         std::find(it->second.begin(), it->second.end(), label) == it->second.end();
}

bool Before(const Choice& a, const Choice& b) {
  if (a.hidden.size() != b.hidden.size()) return a.hidden.size() < b.hidden.size();
  auto key = [](const HiddenStage& s) { return std::tuple(s.width, s.norm, s.activation); };
  for (size_t i = 0; i < a.hidden.size(); ++i) {
    if (key(a.hidden[i]) != key(b.hidden[i])) return key(a.hidden[i]) < key(b.hidden[i]);
  }
  auto rest = [](const Choice& c) {
    return std::tuple(c.batch, c.optimizer, c.rate, c.warmup, c.decay, c.losses, c.epochs);
  };
  return rest(a) < rest(b);
}

Form UpdateForm(const Space& space, const Choice& choice) {
  if (space.fixed_update) return *space.fixed_update;
  const Priors& p = space.priors;
  Form inner = p.optimizers[choice.optimizer].forms[choice.rate];
  const int64_t warmup = p.warmups[choice.warmup];
  const std::string& decay = p.decays[choice.decay].name;
  if (warmup == 0 && decay == "constant") return inner;
  return MakeForm(FindUpdate("schedule")->form,
                  {{"warmup", warmup}, {"decay", decay}, {"inner", std::vector<Form>{inner}}});
}

Module Build(const Space& space, const Choice& choice) {
  const Priors& p = space.priors;
  Module module;
  module.spec = *space.spec;
  Methods methods;
  methods.model = space.model->name;
  methods.sample = space.fixed_sample ? *space.fixed_sample
                                      : MakeForm(*FindEntry(Family::kSample, "epoch_shuffle"),
                                                 {{"batch", p.batches[choice.batch]}});

  InferBuilder builder;
  InferForm form;
  form.kind = InferForm::Kind::kSequential;
  uint32_t at = builder.input();
  auto append = [&](const Form& layer) {
    at = builder.Add(layer, {at});
    InferForm item;
    item.node = at;
    form.items.push_back(std::move(item));
  };
  const Entry& linear = FindLayer("linear")->form;
  int64_t width = space.features;
  for (const HiddenStage& stage : choice.hidden) {
    append(MakeForm(linear, {{"in", width}, {"out", space.widths[stage.width]}}));
    width = space.widths[stage.width];
    if (p.norms[stage.norm].form) append(*p.norms[stage.norm].form);
    if (p.activations[stage.activation].form) append(*p.activations[stage.activation].form);
  }
  append(MakeForm(linear, {{"in", width}, {"out", space.outputs}}));
  if (space.distribution) append(MakeForm(FindLayer("softmax")->form, {}));
  methods.infer = builder.Finish(at, std::move(form));
  support::Diagnostics none;
  PropagateShapes(methods.infer, space.input, none);

  methods.backward =
      MakeForm(*FindEntry(Family::kBackward, "autodiff"), {{"mode", std::string("reverse")}});
  methods.update = UpdateForm(space, choice);
  for (size_t t = 0; t < choice.losses.size(); ++t) {
    methods.losses.push_back({space.loss_terms[t], *p.losses[choice.losses[t]].form});
  }
  methods.losses_written = !methods.losses.empty();
  Phase phase = DefaultPhase();
  phase.epochs = p.epochs[choice.epochs];
  if (space.rest_every) {
    phase.eval_every = std::max<int64_t>(1, phase.epochs / 10);
    phase.checkpoint_every = phase.eval_every;
  }
  methods.phases.push_back(phase);
  if (!space.fixed_phases.empty()) methods.phases = space.fixed_phases;
  methods.phases_written = true;
  module.methods.push_back(std::move(methods));
  return module;
}

}  // namespace l3c::l2
