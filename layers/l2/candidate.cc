#include "layers/l2/candidate.h"

#include <algorithm>
#include <tuple>

#include "layers/l2/expand.h"
#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/infer_methods.h"
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

std::vector<std::string> KindLabels(const Space& space) {
  std::vector<std::string> labels;
  for (StageKind kind : LegalKinds(space)) labels.emplace_back(StageKindName(kind));
  return labels;
}

std::vector<std::string> ReadoutLabels(const Space& space) {
  std::vector<std::string> labels;
  for (Readout readout : LegalReadouts(space)) labels.emplace_back(ReadoutName(readout));
  return labels;
}

template <class T>
std::vector<T> LegalOf(const Space& space, const std::vector<T>& all) {
  std::vector<T> legal;
  for (T one : all) {
    const bool keeps =
        std::all_of(space.asked.begin(), space.asked.end(),
                    [&](const std::string& property) { return Keeps(space, one, property); });
    if (keeps) legal.push_back(one);
  }
  return legal;
}

std::vector<std::string> IntegerLabels(const std::vector<int64_t>& values) {
  std::vector<std::string> labels;
  for (int64_t v : values) labels.push_back(PrintInteger(v));
  return labels;
}

}  // namespace

// causal: position t of the result depends on positions up to t. permutation: reordering the
// positions of the input reorders those of the result, or changes nothing where it has none.
// translation: the same of shifts, away from the edges, where zeros are seen.
bool Keeps(const Space&, StageKind kind, const std::string& property) {
  switch (kind) {
    case StageKind::kPointwise:
    case StageKind::kResidual:
      return true;
    case StageKind::kAttention:
      return property == "causal" || property == "permutation";
    case StageKind::kLine:
    case StageKind::kPlane:
      return property == "translation";
    case StageKind::kDense:
    case StageKind::kHalving:
    case StageKind::kRecurrent:
    case StageKind::kMixture:
      return false;
  }
  return false;
}

bool Keeps(const Space&, Readout readout, const std::string& property) {
  switch (readout) {
    case Readout::kEach:
      return true;
    case Readout::kMean:
      return property != "causal";
    case Readout::kFlat:
    case Readout::kUnfold:
      return false;
  }
  return false;
}

std::vector<StageKind> LegalKinds(const Space& space) { return LegalOf(space, space.kinds); }
std::vector<Readout> LegalReadouts(const Space& space) { return LegalOf(space, space.readouts); }

std::vector<Extent> ExtentsOf(const Space& space, const Choice& choice) {
  std::vector<Extent> extents = {space.extent};
  if (space.tokens) extents[0].channels = space.widths[choice.embed];
  for (const HiddenStage& stage : choice.hidden) {
    extents.push_back(After(stage.kind, extents.back(), space.widths[stage.width]));
  }
  return extents;
}

std::optional<Choice> Settle(const Space& space, Choice choice) {
  Extent at = ExtentsOf(space, {choice.embed, {}})[0];
  for (HiddenStage& stage : choice.hidden) {
    const bool sequence = at.columns == 1 && at.rows > 1;
    bool fits = false;
    switch (stage.kind) {
      case StageKind::kDense:
        fits = true;
        break;
      case StageKind::kPointwise:
        fits = sequence;
        break;
      case StageKind::kAttention:
        fits = sequence;
        break;
      case StageKind::kRecurrent:
        fits = sequence && at.rows <= kMaxUnrolled;
        break;
      case StageKind::kMixture:
        fits = at.positions() == 1;
        break;
      case StageKind::kResidual:
        fits = at.columns == 1;
        break;
      case StageKind::kLine:
        fits = at.columns == 1 && at.rows > 2 && space.widths[stage.width] <= space.max_channels;
        break;
      case StageKind::kHalving:
        fits = at.rows > 3 && at.columns > 3 && space.widths[stage.width] <= space.max_channels;
        break;
      case StageKind::kPlane:
        fits = at.rows > 2 && at.columns > 2 && space.widths[stage.width] <= space.max_channels;
        break;
    }
    if (!HasActivation(stage.kind)) stage.activation = 0;
    if (!HasWidth(stage.kind)) {
      const auto width = std::find(space.widths.begin(), space.widths.end(), at.channels);
      fits = fits && width != space.widths.end();
      if (fits) stage.width = static_cast<size_t>(width - space.widths.begin());
    }
    if (!fits) return std::nullopt;
    at = After(stage.kind, at, space.widths[stage.width]);
  }
  switch (choice.readout) {
    case Readout::kMean:
      if (at.rows == 1 || (at.columns != 1 && at.columns != at.rows)) return std::nullopt;
      if (at.columns > 1 && choice.hidden.empty()) return std::nullopt;
      break;
    case Readout::kEach:
      if (at.rows != space.out_rows || at.columns != space.out_columns) return std::nullopt;
      break;
    case Readout::kFlat:
    case Readout::kUnfold:
      break;
  }
  return choice;
}

std::vector<std::pair<std::string, std::string>> Decisions(const Space& space,
                                                           const Choice& choice) {
  const Priors& p = space.priors;
  const std::string prefix = "l2/" + space.model->name + "/";
  std::vector<std::pair<std::string, std::string>> all;
  all.emplace_back(prefix + "depth", std::to_string(choice.hidden.size() + 1));
  if (space.tokens) {
    all.emplace_back(prefix + "embed.width", PrintInteger(space.widths[choice.embed]));
  }
  const bool kinds = LegalKinds(space).size() > 1;
  for (size_t i = 0; i < choice.hidden.size(); ++i) {
    const HiddenStage& stage = choice.hidden[i];
    if (kinds) all.emplace_back(LayerId(space, i, "kind"), StageKindName(stage.kind));
    if (HasWidth(stage.kind)) {
      all.emplace_back(LayerId(space, i, "width"), PrintInteger(space.widths[stage.width]));
    }
    all.emplace_back(LayerId(space, i, "norm"), p.norms[stage.norm].label);
    if (HasActivation(stage.kind)) {
      all.emplace_back(LayerId(space, i, "activation"), p.activations[stage.activation].label);
    }
  }
  if (LegalReadouts(space).size() > 1) {
    all.emplace_back(prefix + "readout", ReadoutName(choice.readout));
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
  if (what == "embed.width" && space.tokens) return WidthLabels(space);
  if (what == "readout" && LegalReadouts(space).size() > 1) return ReadoutLabels(space);
  for (int64_t i = 0; i + 1 < space.max_stages; ++i) {
    const size_t stage = static_cast<size_t>(i);
    if (id == LayerId(space, stage, "kind") && LegalKinds(space).size() > 1) {
      return KindLabels(space);
    }
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
  HiddenStage stage;
  for (StageKind kind : LegalKinds(space)) {
    if (HasWidth(kind) && HasActivation(kind)) stage.kind = kind;
  }
  deepest.hidden.resize(static_cast<size_t>(space.max_stages - 1), stage);
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
  auto key = [](const HiddenStage& s) { return std::tuple(s.kind, s.width, s.norm, s.activation); };
  for (size_t i = 0; i < a.hidden.size(); ++i) {
    if (key(a.hidden[i]) != key(b.hidden[i])) return key(a.hidden[i]) < key(b.hidden[i]);
  }
  auto rest = [](const Choice& c) {
    return std::tuple(c.embed, c.readout, c.batch, c.optimizer, c.rate, c.warmup, c.decay, c.losses,
                      c.epochs);
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

  std::vector<InferForm> items;
  auto append = [&](const std::vector<Form>& layers) {
    for (const Form& layer : layers) items.push_back(LayerItem(layer));
  };
  if (space.tokens) {
    append(
        EmbedForms(space.vocabulary, space.extent.rows, space.widths[choice.embed], space.placed));
  }
  const std::vector<Extent> extents = ExtentsOf(space, choice);
  for (size_t i = 0; i < choice.hidden.size(); ++i) {
    const HiddenStage& stage = choice.hidden[i];
    for (InferForm& item :
         StageItems(stage.kind, extents[i], space.widths[stage.width], p.norms[stage.norm].form,
                    p.activations[stage.activation].form, space.causal)) {
      items.push_back(std::move(item));
    }
  }
  append(ReadoutForms(choice.readout, extents.back(), space.outputs, space.out_rows));
  if (!space.actions.empty()) {
    items = {Symmetric(Sequential(std::move(items)), space.actions, space.action_axis)};
  }
  if (space.distribution) append({MakeForm(FindLayer("softmax")->form, {})});
  InferForm form = Sequential(std::move(items));
  support::Diagnostics none;
  InferBuilder builder;
  const uint32_t input = builder.input();
  const auto output = InferLowering(builder, none).Lower(form, input);
  methods.infer = builder.Finish(*output, std::move(form));
  PropagateShapes(methods.infer, space.input, none);

  methods.backward =
      MakeForm(*FindEntry(Family::kBackward, "autodiff"), {{"mode", std::string("reverse")}});
  if (space.fixed_backward) methods.backward = *space.fixed_backward;
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
