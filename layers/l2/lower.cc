// The search for a method, in order:
//
//   1. Space         what the specification and the priors leave to choose from
//   2. SpaceGraph    all candidates in one e-graph; counting them is a pass over it
//   3. Best          for each batch and optimiser, the best network, with the best of the other
//                    choices
//   4. Top           the best few, for the next lowering to tell apart
//   5. Explain       for each choice made, the best candidate under every other label of it
//
// Batch and optimiser change what a stage of the network costs; everything else but the network
// changes the steps alone, so its best label does not depend on the network.
#include "layers/l2/lower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/l2/candidate.h"
#include "layers/l2/estimate.h"
#include "layers/l2/form.h"
#include "layers/l2/front.h"
#include "layers/l2/inputs.h"
#include "layers/l2/layers.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/score.h"
#include "layers/l2/space_graph.h"
#include "layers/l2/stage.h"
#include "layers/l2/updates.h"
#include "layers/l2/verify.h"
#include "layers/l3/domain.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"
#include "rewrites/rewrites.h"

namespace l3c::l2 {
namespace {

using search::NoCandidates;
using search::SearchFailure;
using support::PrintInteger;

constexpr char kFrontDecision[] = "l2/goal.front";

struct Scored {
  Choice choice;
  Score score;
};

bool Better(const Scored& a, const Scored& b) {
  return l2::Better(a.score, a.choice, b.score, b.choice);
}

// ---- 1. Space ----------------------------------------------------------------------------------

class SpaceBuilder {
 public:
  // `first`: the methods of a model that trains together with this one; null for the first.
  SpaceBuilder(const l3::Module& spec, const l3::Model& model, const Priors& priors,
               std::optional<int64_t> rows, const Methods* first, search::Explanation& explanation)
      : rows_(rows), first_(first), explanation_(explanation) {
    space_.spec = &spec;
    space_.model = &model;
    space_.priors = priors;
  }

  std::optional<SearchFailure> Build() {
    for (auto step :
         {&SpaceBuilder::TakeModel, &SpaceBuilder::TakeObjective, &SpaceBuilder::TakeHints,
          &SpaceBuilder::TakeBounds, &SpaceBuilder::TakeRows, &SpaceBuilder::TakeFirst}) {
      if (auto failure = (this->*step)()) return failure;
    }
    return std::nullopt;
  }
  Space Take() { return std::move(space_); }

 private:
  static SearchFailure None(std::string reason, std::string hint, Span where) {
    return NoCandidates{std::move(reason), std::move(hint), where};
  }

  std::optional<SearchFailure> TakeModel() {
    const l3::Module& spec = *space_.spec;
    const l3::Model& model = *space_.model;
    std::vector<l3::Ref> fields;
    for (const l3::Ref& in : model.in) AddFields(spec, in, fields);
    for (const l3::Ref& field : fields) {
      if (spec.FindData(field.owner)->environment.empty()) continue;
      return None("no way to sample an environment is supported now", "read data from files",
                  model.span);
    }
    return TakeDomains();
  }

  // What is read and put out, and with that the kinds of stage and readout that may serve.
  std::optional<SearchFailure> TakeDomains() {
    const l3::Module& spec = *space_.spec;
    const l3::Model& model = *space_.model;
    space_.input = InputShape(spec, model);
    space_.outputs = l3::NumElements(model.out);
    const int64_t features = tensor::NumElements(space_.input);
    // What linear can take, and what a weight matrix may hold.
    constexpr int64_t kMaxElements = int64_t{1} << 24;
    if (features > kMaxElements || space_.outputs > kMaxElements ||
        features * space_.outputs > kMaxParameters) {
      return None("a sample of " + PrintInteger(features) + " elements and an output of " +
                      PrintInteger(space_.outputs) + " are more than linear layers can join",
                  "use smaller domains", model.span);
    }
    space_.distribution = ClassesOf(model.out) > 0;
    const bool sequence =
        std::all_of(model.in.begin(), model.in.end(),
                    [&](const l3::Ref& ref) {
                      return spec.DomainOf(ref)->kind == l3::Domain::Kind::kSequence;
                    }) &&
        space_.input.size() <= 2 && (model.in.size() == 1 || space_.input.size() == 2) &&
        space_.input[0] > 1;
    const bool image = model.in.size() == 1 &&
                       spec.DomainOf(model.in[0])->kind == l3::Domain::Kind::kTensor &&
                       (space_.input.size() == 2 || space_.input.size() == 3) &&
                       space_.input[0] > 3 && space_.input[1] > 3;
    space_.kinds = {StageKind::kDense};
    space_.extent = {1, 1, features};
    if (sequence) {
      space_.extent = {space_.input[0], 1, features / space_.input[0]};
      space_.kinds.insert(space_.kinds.end(),
                          {StageKind::kPointwise, StageKind::kAttention, StageKind::kLine});
      space_.vocabulary = VocabularyOf(model);
      space_.tokens = space_.vocabulary > 0;
    } else if (image) {
      space_.extent = {space_.input[0], space_.input[1],
                       features / space_.input[0] / space_.input[1]};
      // Without halving an image stays as dear as it is: only a symmetry is worth that.
      const bool shifts =
          std::any_of(model.properties.begin(), model.properties.end(),
                      [](const l3::Property& property) { return property.group == "translation"; });
      space_.kinds.push_back(shifts ? StageKind::kPlane : StageKind::kHalving);
    }
    const bool positions_out = model.out.kind == l3::Domain::Kind::kSequence;
    if (positions_out) space_.out_rows = model.out.size;
    if (positions_out && sequence && space_.out_rows == space_.extent.rows) {
      space_.readouts = {Readout::kEach};
    } else if (positions_out && space_.distribution) {
      space_.readouts = {Readout::kUnfold};
    } else {
      space_.readouts = {Readout::kFlat};
      if (sequence || image) space_.readouts.push_back(Readout::kMean);
    }
    // A kind of stage is searched over where this build has its layers.
    auto lacks = [](std::initializer_list<std::string_view> layers) {
      return std::any_of(layers.begin(), layers.end(),
                         [](std::string_view layer) { return FindLayer(layer) == nullptr; });
    };
    std::erase_if(space_.kinds, [&](StageKind kind) {
      switch (kind) {
        case StageKind::kDense:
        case StageKind::kPointwise:
          return false;
        case StageKind::kAttention:
          return lacks({"attn"});
        case StageKind::kLine:
        case StageKind::kPlane:
          return lacks({"conv"});
        case StageKind::kHalving:
          return lacks({"conv", "pool"});
      }
      return true;
    });
    return TakeProperties(sequence, positions_out);
  }

  // Whole numbers in sequence are tokens where it is known how many there are: those that the model
  // puts out again, or all that a byte can be.
  int64_t VocabularyOf(const l3::Model& model) const {
    if (model.in.size() != 1) return 0;
    const l3::Domain& element = space_.spec->DomainOf(model.in[0])->parts[0];
    if (element.kind != l3::Domain::Kind::kScalar || tensor::IsFloat(element.dtype)) return 0;
    const int64_t classes = ClassesOf(model.out);
    if (classes > 0 && model.autoregressive()) return classes;
    if (element.dtype == tensor::DType::kU8) return 256;
    return element.dtype == tensor::DType::kBool ? 2 : 0;
  }

  std::optional<SearchFailure> TakeProperties(bool sequence, bool positions_out) {
    for (const l3::Property& property : space_.model->properties) {
      const std::string name(l3::PropertyName(property.kind));
      switch (property.kind) {
        case l3::Property::Kind::kCausal:
        case l3::Property::Kind::kAutoregressive:
          // One output, of all that was read, comes after everything.
          if (!positions_out) continue;
          space_.causal = true;
          if (std::find(space_.asked.begin(), space_.asked.end(), "causal") == space_.asked.end()) {
            space_.asked.push_back("causal");
          }
          break;
        case l3::Property::Kind::kEquivariant:
          space_.asked.push_back(property.group);
          if (property.group == "permutation") space_.placed = false;
          break;
        default:
          continue;
      }
      const bool known = space_.asked.back() == "causal" || space_.asked.back() == "permutation" ||
                         space_.asked.back() == "translation";
      if (known && !LegalReadouts(space_).empty()) continue;
      const std::string what = property.group.empty() ? name : name + "(" + property.group + ")";
      return None(
          "no network of the layers that are searched over can be shown to be '" + what + "'",
          !known ? "leave out the property, or write the L2 text by hand"
          : sequence || positions_out
              ? "give the output a position for each that is read, or leave out the property"
              : "read a sequence or an image, or leave out the property",
          property.span);
    }
    return std::nullopt;
  }

  std::optional<SearchFailure> TakeObjective() {
    support::Diagnostics diagnostics;
    auto objective = ResolveObjective(*space_.spec, space_.model->name, diagnostics);
    if (!objective) {
      const support::Diagnostic& first = diagnostics.all().front();
      return None(first.message, first.fix.empty() ? first.label : first.fix, first.span);
    }
    space_.objective = std::move(*objective);
    for (const ObjectiveTerm& term : space_.objective.terms) {
      if (!term.has_loss) continue;
      std::vector<size_t> fitting;
      for (size_t l = 0; l < space_.priors.losses.size(); ++l) {
        const auto& form = space_.priors.losses[l].form;
        if (form && FindLoss(form->name)->accepts(term.target_kind)) fitting.push_back(l);
      }
      if (fitting.empty()) {
        return None("no loss of the priors compares " + l3::PrintRef(term.predicted) + " with " +
                        l3::PrintRef(term.target),
                    "write the L2 text by hand", term.term->span);
      }
      space_.fitting_losses.push_back(std::move(fitting));
      space_.loss_terms.push_back(term.choice);
    }
    return std::nullopt;
  }

  // A form given by an annotation instead of the search.
  std::optional<SearchFailure> TakeHints() {
    auto it = space_.spec->hints.find(space_.model->name);
    if (it == space_.spec->hints.end()) return std::nullopt;
    for (const support::EscapeHatch& hatch : it->second) {
      if (hatch.layer != "l2") continue;
      const std::map<std::string, Family> families = {{"sample", Family::kSample},
                                                      {"update", Family::kUpdate},
                                                      {"backward", Family::kBackward}};
      auto family = families.find(hatch.directive);
      if (family == families.end()) {
        return None("the annotation l2::" + hatch.directive + " is not supported yet",
                    "supported: l2::sample, l2::update, l2::backward", hatch.span);
      }
      const support::SourceFile text("annotation", hatch.args);
      support::Diagnostics diagnostics(&text);
      support::ParserBase parser(text, diagnostics);
      auto form = ParseForm(parser, family->second);
      if (form && !parser.AtEnd()) parser.ErrorExpected("the end of the annotation");
      if (diagnostics.has_errors()) {
        const support::Diagnostic& first = diagnostics.all().front();
        return None(first.message, first.fix.empty() ? first.label : first.fix, hatch.span);
      }
      form->span = {};
      Fix(family->second, std::move(*form));
      explanation_.pruned.push_back(
          {"other ways to " + hatch.directive, support::PrintEscapeHatch(hatch), 0});
    }
    return std::nullopt;
  }

  void Fix(Family family, Form form) {
    Priors& p = space_.priors;
    if (family == Family::kSample) {
      p.batches = {BatchOf(form)};
      space_.fixed_sample = std::move(form);
    } else if (family == Family::kUpdate) {
      // One candidate of factor one: what is fixed ranks nothing.
      OptimizerPrior fixed;
      fixed.name = PrintForm(form, Family::kUpdate);
      fixed.rates = {1};
      fixed.forms = {form};
      fixed.best_rate = 1;
      p.optimizers = {std::move(fixed)};
      p.warmups = {0};
      p.decays = {{"constant", 1}};
      space_.fixed_update = std::move(form);
    } else {
      space_.fixed_backward = std::move(form);
    }
  }

  std::optional<SearchFailure> TakeBounds() {
    const Priors& p = space_.priors;
    const int64_t known = static_cast<int64_t>(p.depth_factors.size());
    const int64_t depth = space_.model->depth().value_or(known);
    space_.max_stages = std::min(depth, known);
    if (depth > known) {
      explanation_.pruned.push_back({"chains of more than " + PrintInteger(known) + " stages",
                                     "the priors cover no deeper plain chains",
                                     static_cast<uint64_t>(depth - known)});
    }
    const int64_t bound = std::min(space_.model->width().value_or(p.max_width), p.max_width);
    uint64_t above = 0;
    for (int64_t w = 1; w <= p.max_width; w *= 2) {
      if (w > bound) {
        ++above;
      } else if (w >= p.min_width || w * 2 > bound) {
        // Below the usual least width only the widest that the bound leaves is tried.
        space_.widths.push_back(w);
      }
    }
    space_.max_channels = p.max_channels;
    if (above > 0) {
      explanation_.pruned.push_back({"hidden widths above " + PrintInteger(bound),
                                     "width(" + PrintInteger(bound) + ")", above});
    }
    return std::nullopt;
  }

  // Epochs enough for the updates that training takes, when there are few rows. The choices keep
  // their ratios to the usual number.
  std::optional<SearchFailure> TakeRows() {
    if (!rows_ || *rows_ < 1) return std::nullopt;
    Priors& p = space_.priors;
    if (!space_.fixed_sample && p.batches.back() > *rows_) {
      const size_t before = p.batches.size();
      std::erase_if(p.batches, [&](int64_t batch) { return batch > *rows_; });
      if (p.batches.empty()) p.batches = {*rows_};
      explanation_.pruned.push_back({"batches of more than " + PrintInteger(*rows_) + " rows",
                                     "there are no more rows", before - p.batches.size()});
    }
    auto ceil_div = [](int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); };
    const int64_t steps = ceil_div(*rows_, p.usual_batch);
    const int64_t needed = ceil_div(p.least_updates, steps);
    const int64_t usual = p.usual_epochs;
    if (needed <= usual) return std::nullopt;
    for (int64_t& epochs : p.epochs) epochs = ceil_div(epochs * needed, usual);
    p.usual_epochs = needed;
    space_.rest_every = true;
    explanation_.pruned.push_back({PrintInteger(usual) + " epochs as the usual number",
                                   PrintInteger(*rows_) + " rows are " + PrintInteger(steps) +
                                       " steps an epoch, and " + PrintInteger(p.least_updates) +
                                       " steps take " + PrintInteger(needed) + " epochs",
                                   0});
    return std::nullopt;
  }

  // Models that train together see the same rows for as long.
  std::optional<SearchFailure> TakeFirst() {
    if (first_ == nullptr) return std::nullopt;
    Priors& p = space_.priors;
    p.batches = {BatchOf(first_->sample)};
    p.epochs = {first_->phases.front().epochs};
    p.usual_epochs = p.epochs.front();
    space_.fixed_sample = first_->sample;
    space_.fixed_phases = first_->phases;
    explanation_.pruned.push_back({"other batches and epochs for '" + space_.model->name + "'",
                                   "it trains together with '" + first_->model + "'", 0});
    return std::nullopt;
  }

  std::optional<int64_t> rows_;
  const Methods* first_;
  search::Explanation& explanation_;
  Space space_;
};

// ---- 3. to 5. ----------------------------------------------------------------------------------

class Searcher {
 public:
  Searcher(const Space& space, const Scorer& scorer, SpaceGraph& graph,
           const search::LoweringOptions& options)
      : space_(space), scorer_(scorer), graph_(graph), options_(options) {
    const std::string prefix = "l2/" + space.model->name + "/";
    for (const auto& [id, label] : options.forced) {
      if (id.starts_with("l2/") && id != prefix + "plan") forced_.required[id] = label;
    }
    prefix_ = prefix;
  }

  const Restriction& forced() const { return forced_; }
  uint64_t scored() const { return scored_; }

  // A forced choice that no candidate has.
  std::optional<SearchFailure> CheckForced() const {
    for (const auto& [id, label] : forced_.required) {
      const auto labels = Labels(space_, id);
      if (!labels) {
        return NoCandidates{"there is no decision '" + id + "' to force",
                            "decisions: " + support::Join(AllDecisionIds(space_)),
                            {}};
      }
      if (std::find(labels->begin(), labels->end(), label) == labels->end()) {
        return NoCandidates{"'" + label + "' is no choice of '" + id + "'",
                            "choices: " + support::Join(*labels),
                            {}};
      }
    }
    return std::nullopt;
  }

  // The best candidate under a restriction; nothing when none is legal.
  std::optional<Scored> Best(const Restriction& restriction) {
    struct Pair {
      size_t batch, optimizer;
      Choice rest;   // all but the network
      double bound;  // no candidate of the pair has a lower log score
    };
    std::vector<Pair> pairs;
    for (size_t b = 0; b < space_.priors.batches.size(); ++b) {
      for (size_t o = 0; o < space_.priors.optimizers.size(); ++o) {
        auto rest = BestRest(b, o, restriction);
        if (!rest) continue;
        pairs.push_back({b, o, rest->first, rest->second + BestNetworkLog(b, o)});
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.bound < b.bound; });
    std::optional<Scored> best;
    for (const Pair& pair : pairs) {
      // A little slack: the bound and the score add the same numbers in another order.
      if (best &&
          pair.bound > std::log(best->score.time_to_target() / space_.priors.base_steps) + 1e-9) {
        break;
      }
      const auto network = graph_.Network(pair.batch, pair.optimizer, restriction);
      if (!network) continue;
      Choice choice = pair.rest;
      choice.embed = network->embed;
      choice.hidden = network->hidden;
      choice.readout = network->readout;
      Scored candidate = Evaluate(std::move(choice));
      if (!best || Better(candidate, *best)) best = std::move(candidate);
    }
    return best;
  }

  // The `count` best, in order, `winner` first. What is left when a candidate is taken splits by
  // its decisions: those that differ from it in the first, those that agree in the first and differ
  // in the second, and so on; each part is searched for its best (Lawler 1972).
  std::vector<Scored> Top(Scored winner, size_t count) {
    struct Part {
      Scored best;
      Restriction restriction;
    };
    std::vector<Part> parts = {{std::move(winner), forced_}};
    std::vector<Scored> top;
    while (!parts.empty() && top.size() < count && !graph_.exhausted()) {
      const auto next =
          std::min_element(parts.begin(), parts.end(),
                           [](const Part& a, const Part& b) { return Better(a.best, b.best); });
      const Part part = std::move(*next);
      parts.erase(next);
      top.push_back(part.best);
      if (top.size() == count) break;
      Restriction agrees = part.restriction;
      for (const auto& [id, label] : Decisions(space_, part.best.choice)) {
        if (part.restriction.required.contains(id)) continue;
        Restriction differs = agrees;
        differs.excluded[id].push_back(label);
        agrees.required[id] = label;
        if (auto best = Best(differs)) parts.push_back({std::move(*best), std::move(differs)});
      }
    }
    return top;
  }

  // The first legal candidate in the fixed order of decisions and labels.
  std::optional<Scored> First() {
    Restriction so_far = forced_;
    std::optional<Scored> found;
    size_t at = 0;
    for (;;) {
      if (!found) {
        found = Best(so_far);
        if (!found) return std::nullopt;
      }
      const auto decisions = Decisions(space_, found->choice);
      if (at == decisions.size()) return found;
      const std::string id = decisions[at++].first;
      if (so_far.required.contains(id)) continue;
      const std::vector<std::string> labels = *Labels(space_, id);
      for (const std::string& label : labels) {
        Restriction next = so_far;
        next.required[id] = label;
        if (auto candidate = Best(next)) {
          so_far = std::move(next);
          found = std::move(candidate);
          break;
        }
      }
    }
  }

  // From the first candidate, each decision in turn to the label that is best as all else stands,
  // until no single change helps.
  std::optional<Scored> Greedy() {
    std::optional<Scored> now = First();
    for (bool changed = now.has_value(); changed;) {
      changed = false;
      for (size_t at = 0; at < Decisions(space_, now->choice).size(); ++at) {
        const auto [id, label] = Decisions(space_, now->choice)[at];
        if (forced_.required.contains(id)) continue;
        for (Scored& other : SingleChanges(now->choice, id)) {
          if (!Better(other, *now)) continue;
          now = std::move(other);
          changed = true;
        }
      }
    }
    return now;
  }

  void Explain(const Scored& winner, bool losers, search::Explanation& explanation) {
    for (const auto& [id, label] : Decisions(space_, winner.choice)) {
      search::Decision decision;
      decision.id = id;
      decision.chosen = label;
      decision.cost = scorer_.Cost(winner.score);
      decision.forced = forced_.required.contains(id);
      const std::string what = id.substr(prefix_.size());
      decision.rules = RulesOf(what);
      if (losers) AddLosers(winner, id, label, decision);
      explanation.decisions.push_back(std::move(decision));
    }
  }

 private:
  Scored Evaluate(Choice choice) {
    ++scored_;
    Score score = scorer_.Evaluate(choice);
    return {std::move(choice), std::move(score)};
  }

  // log(steps factor · seconds) of the best network for the pair, unrestricted.
  double BestNetworkLog(size_t batch, size_t optimizer) {
    auto [it, fresh] = best_network_.try_emplace(std::pair(batch, optimizer), 0.0);
    if (fresh) it->second = graph_.LeastLogScore(batch, optimizer);
    return it->second;
  }

  // All choices but the network, each at its best for one batch and optimiser, with their share of
  // log steps. They change the steps alone, so they do not depend on one another.
  std::optional<std::pair<Choice, double>> BestRest(size_t batch, size_t optimizer,
                                                    const Restriction& restriction) const {
    const Priors& p = space_.priors;
    auto allows = [&](std::string_view what, const std::string& label) {
      return restriction.Allows(prefix_ + std::string(what), label);
    };
    if (!allows("sample.batch", PrintInteger(p.batches[batch])) ||
        !allows("update.optimizer", p.optimizers[optimizer].name)) {
      return std::nullopt;
    }
    double sum = scorer_.BatchLog(batch) + scorer_.OptimizerLog(optimizer);
    bool legal = true;
    auto least = [&](std::string_view what, size_t labels, auto label, auto log) {
      std::optional<size_t> best;
      for (size_t i = 0; i < labels; ++i) {
        if (allows(what, label(i)) && (!best || log(i) < log(*best))) best = i;
      }
      if (best) sum += log(*best);
      legal = legal && best;
      return best.value_or(0);
    };
    const OptimizerPrior& prior = p.optimizers[optimizer];
    Choice choice;
    choice.batch = batch;
    choice.optimizer = optimizer;
    choice.rate = least(
        "update.lr", prior.rates.size(),
        [&](size_t i) { return support::PrintReal(prior.rates[i]); },
        [&](size_t i) { return scorer_.RateLog(optimizer, i); });
    choice.warmup = least(
        "update.warmup", p.warmups.size(), [&](size_t i) { return PrintInteger(p.warmups[i]); },
        [&](size_t i) { return scorer_.WarmupLog(optimizer, i); });
    choice.decay = least(
        "update.decay", p.decays.size(), [&](size_t i) { return p.decays[i].name; },
        [&](size_t i) { return scorer_.DecayLog(i); });
    for (size_t t = 0; t < space_.loss_terms.size(); ++t) {
      const auto& fitting = space_.fitting_losses[t];
      choice.losses.push_back(fitting[least(
          "loss." + space_.loss_terms[t], fitting.size(),
          [&](size_t i) { return p.losses[fitting[i]].label; },
          [&](size_t i) { return scorer_.LossLog(fitting[i]); })]);
    }
    choice.epochs = least(
        "phases.epochs", p.epochs.size(), [&](size_t i) { return PrintInteger(p.epochs[i]); },
        [&](size_t i) { return scorer_.EpochsLog(i); });
    if (!legal) return std::nullopt;
    return std::pair(std::move(choice), sum);
  }

  bool WithinBudget(const Score& score) const {
    const auto parameters = space_.model->param_budget();
    const auto latency = space_.model->latency_budget();
    return (!parameters || score.parameters <= *parameters) &&
           (!latency || score.latency <= *latency);
  }

  // The legal candidates that differ from `choice` in this decision alone.
  std::vector<Scored> SingleChanges(const Choice& choice, const std::string& id) {
    std::vector<Scored> changes;
    auto consider = [&](Choice changed) {
      auto settled = Settle(space_, std::move(changed));
      if (!settled) return;
      for (const auto& [other, label] : Decisions(space_, *settled)) {
        if (!forced_.Allows(other, label)) return;
      }
      Scored candidate = Evaluate(std::move(*settled));
      if (WithinBudget(candidate.score)) changes.push_back(std::move(candidate));
    };
    const std::string what = id.substr(prefix_.size());
    auto each = [&](size_t count, auto set) {
      for (size_t i = 0; i < count; ++i) {
        Choice changed = choice;
        set(changed, i);
        consider(std::move(changed));
      }
    };
    const Priors& p = space_.priors;
    if (what == "depth") {
      // Stages that are new begin like the last.
      each(static_cast<size_t>(space_.max_stages), [&](Choice& c, size_t i) {
        c.hidden.resize(i, c.hidden.empty() ? HiddenStage{} : c.hidden.back());
      });
      if (choice.hidden.empty()) {
        // Of a first hidden stage there are many: all are tried.
        for (StageKind kind : LegalKinds(space_)) {
          for (size_t w = 0; w < space_.widths.size(); ++w) {
            for (size_t n = 0; n < p.norms.size(); ++n) {
              for (size_t a = 0; a < p.activations.size(); ++a) {
                Choice changed = choice;
                changed.hidden = {{kind, w, n, a}};
                consider(std::move(changed));
              }
            }
          }
        }
      }
    } else if (what == "embed.width") {
      each(space_.widths.size(), [](Choice& c, size_t i) { c.embed = i; });
    } else if (what == "readout") {
      const std::vector<Readout> readouts = LegalReadouts(space_);
      each(readouts.size(), [&](Choice& c, size_t i) { c.readout = readouts[i]; });
    } else if (what == "sample.batch") {
      each(p.batches.size(), [](Choice& c, size_t i) { c.batch = i; });
    } else if (what == "update.optimizer") {
      each(p.optimizers.size(), [&](Choice& c, size_t i) {
        c.optimizer = i;
        c.rate = std::min(c.rate, p.optimizers[i].rates.size() - 1);
      });
    } else if (what == "update.lr") {
      each(p.optimizers[choice.optimizer].rates.size(), [](Choice& c, size_t i) { c.rate = i; });
    } else if (what == "update.warmup") {
      each(p.warmups.size(), [](Choice& c, size_t i) { c.warmup = i; });
    } else if (what == "update.decay") {
      each(p.decays.size(), [](Choice& c, size_t i) { c.decay = i; });
    } else if (what == "phases.epochs") {
      each(p.epochs.size(), [](Choice& c, size_t i) { c.epochs = i; });
    } else if (what.starts_with("loss.")) {
      for (size_t t = 0; t < space_.loss_terms.size(); ++t) {
        if (what != "loss." + space_.loss_terms[t]) continue;
        each(space_.fitting_losses[t].size(),
             [&](Choice& c, size_t i) { c.losses[t] = space_.fitting_losses[t][i]; });
      }
    } else {
      const size_t dot = what.find('.');
      const size_t layer = static_cast<size_t>(std::stoul(what.substr(5, dot - 5))) - 1;
      const std::string part = what.substr(dot + 1);
      if (part == "kind") {
        const std::vector<StageKind> kinds = LegalKinds(space_);
        each(kinds.size(), [&](Choice& c, size_t i) { c.hidden[layer].kind = kinds[i]; });
      } else if (part == "width") {
        each(space_.widths.size(), [&](Choice& c, size_t i) { c.hidden[layer].width = i; });
      } else if (part == "norm") {
        each(p.norms.size(), [&](Choice& c, size_t i) { c.hidden[layer].norm = i; });
      } else {
        each(p.activations.size(), [&](Choice& c, size_t i) { c.hidden[layer].activation = i; });
      }
    }
    return changes;
  }

  void AddLosers(const Scored& winner, const std::string& id, const std::string& chosen,
                 search::Decision& decision) {
    std::vector<std::pair<Scored, std::string>> losers;
    const std::vector<std::string> labels = *Labels(space_, id);
    for (const std::string& label : labels) {
      if (label == chosen) continue;
      Restriction restriction = forced_;
      restriction.required[id] = label;
      if (auto loser = Best(restriction)) {
        losers.emplace_back(std::move(*loser), label);
        continue;
      }
      const auto fewest = graph_.FewestParameters(restriction);
      const auto budget = space_.model->param_budget();
      if (fewest && budget && *fewest > *budget) {
        decision.pruned.push_back({label,
                                   "needs at least " + PrintInteger(*fewest) +
                                       " parameters, param_budget(" + support::PrintCount(*budget) +
                                       ")",
                                   0});
        continue;
      }
      const auto least = graph_.LeastLatency(restriction);
      const auto time = space_.model->latency_budget();
      if (least && time && *least > *time) {
        decision.pruned.push_back({label,
                                   "a forward pass takes at least " + LatencyText(*least) +
                                       ", latency_budget(" + support::PrintSeconds(*time) + ")",
                                   0});
      } else if (fewest && budget && time) {
        decision.pruned.push_back({label, "exceeds param_budget or latency_budget", 0});
      } else {
        decision.pruned.push_back({label, "does not go with what is forced", 0});
      }
    }
    std::stable_sort(losers.begin(), losers.end(),
                     [](const auto& a, const auto& b) { return Better(a.first, b.first); });
    for (auto& [loser, label] : losers) {
      search::Loser record;
      record.label = label;
      record.cost = scorer_.Cost(loser.score);
      record.difference = search::Difference(record.cost, decision.cost);
      record.decided_by = scorer_.DecidedBy(winner.score, loser.score);
      decision.losers.push_back(std::move(record));
    }
  }

  std::vector<search::RuleUse> RulesOf(const std::string& what) const {
    if (what == "depth" || what == "readout") return graph_.RulesFor("Output");
    if (what == "embed.width") return graph_.RulesFor("Embed", "Width");
    if (what.starts_with("layer")) {
      return graph_.RulesFor("Stage", what.ends_with(".width")  ? "Width"
                                      : what.ends_with(".kind") ? "Move"
                                                                : "");
    }
    if (what == "sample.batch") return graph_.RulesFor("EpochShuffle");
    if (what == "update.optimizer" || what == "update.lr") return graph_.RulesFor("Step");
    if (what.starts_with("update.")) return graph_.RulesFor("Schedule");
    if (what.starts_with("loss.")) return graph_.RulesFor("Term");
    return graph_.RulesFor("Epochs");
  }

  const Space& space_;
  const Scorer& scorer_;
  SpaceGraph& graph_;
  const search::LoweringOptions& options_;
  std::string prefix_;
  Restriction forced_;
  std::map<std::pair<size_t, size_t>, double> best_network_;
  uint64_t scored_ = 0;
};

// ---- Failures ----------------------------------------------------------------------------------

SearchFailure Infeasible(const Space& space, SpaceGraph& graph, const Restriction& forced) {
  const auto budget = space.model->param_budget();
  const auto fewest = graph.FewestParameters(forced);
  if (budget && fewest && *fewest > *budget) {
    const l3::Property* property = space.model->FindProperty(l3::Property::Kind::kParamBudget);
    return NoCandidates{
        "the smallest candidate has " + PrintInteger(*fewest) + " parameters, param_budget(" +
            support::PrintCount(*budget) + ") allows " + PrintInteger(*budget),
        "raise param_budget to " + PrintInteger(*fewest) + " or more", property->span};
  }
  const auto time = space.model->latency_budget();
  const auto least = graph.LeastLatency(forced);
  const l3::Property* latency = space.model->FindProperty(l3::Property::Kind::kLatencyBudget);
  if (time && least && *least > *time) {
    return NoCandidates{
        "the forward pass of one sample of the smallest candidate is predicted to take " +
            LatencyText(*least) + ", latency_budget(" + support::PrintSeconds(*time) + ") allows " +
            support::PrintSeconds(*time),
        "raise latency_budget to " + LatencyText(*least) + " or more", latency->span};
  }
  if (budget && time && fewest && least) {
    return NoCandidates{"no candidate is within param_budget(" + support::PrintCount(*budget) +
                            ") and latency_budget(" + support::PrintSeconds(*time) + ") at once",
                        forced.required.empty() ? "raise one of the two"
                                                : "raise one of the two, or force fewer choices",
                        latency->span};
  }
  return NoCandidates{"the forced choices exclude one another", "force fewer of them", {}};
}

// Networks, by a count that needs no graph: Σ over depths of (widths·norms·activations)^hidden.
double NetworkCount(double per_stage, int64_t max_stages) {
  double count = 0, term = 1;
  for (int64_t d = 1; d <= max_stages; ++d, term *= per_stage) count += term;
  return count;
}

SearchFailure TooMany(const Space& space, uint64_t scored, uint64_t bound) {
  const double kinds = static_cast<double>(
      space.priors.norms.size() * space.priors.activations.size() * LegalKinds(space).size());
  const double widths = static_cast<double>(space.widths.size());
  const double all = NetworkCount(widths * kinds, space.max_stages);
  // What a turn of each screw takes away: one stage less, or half the width.
  const double shallower = NetworkCount(widths * kinds, space.max_stages - 1);
  const double narrower = NetworkCount((widths - 1) * kinds, space.max_stages);
  const bool by_depth = all - shallower >= all - narrower;
  search::TooManyCandidates many;
  many.count = scored;
  const auto kind = by_depth ? l3::Property::Kind::kDepth : l3::Property::Kind::kWidth;
  const l3::Property* property = space.model->FindProperty(kind);
  const std::string name(l3::PropertyName(kind));
  const int64_t value = by_depth ? space.max_stages : space.widths.back();
  many.loosest = property != nullptr ? name + "(" + PrintInteger(property->count) + ")"
                                     : "the missing " + name + "(n)";
  many.hint = "at most " + PrintInteger(static_cast<int64_t>(bound)) + " are scored; write " +
              name + "(" + PrintInteger(std::max<int64_t>(1, by_depth ? value - 1 : value / 2)) +
              ")";
  if (property != nullptr) many.where = property->span;
  return many;
}

uint64_t Saturate(double count) {
  return count >= 1.8446744073709552e19 ? std::numeric_limits<uint64_t>::max()
                                        : static_cast<uint64_t>(count);
}

// "layer1.norm=norm(rms)": where a choice differs from another.
std::string Differing(const Space& space, const Choice& choice, const Choice& from) {
  std::map<std::string, std::string> other;
  for (auto& [id, label] : Decisions(space, from)) other[id] = label;
  const std::string prefix = "l2/" + space.model->name + "/";
  std::vector<std::string> differing;
  for (const auto& [id, label] : Decisions(space, choice)) {
    if (other[id] != label) differing.push_back(id.substr(prefix.size()) + "=" + label);
  }
  return support::Join(differing);
}

// Plans take the same time where nothing differs but figures: which these are.
std::string PlanKey(const Space& space, const Choice& choice) {
  std::string key;
  for (const auto& [id, label] : Decisions(space, choice)) {
    const bool figure = id.ends_with("update.lr") || id.ends_with("phases.epochs") ||
                        (id.ends_with("update.warmup") && label != "0");
    key += id + "=" + (figure ? "" : label) + ";";
  }
  return key;
}

// Orders the best few by predicted steps × the simulated step of their whole plans, and records it.
// What is forced is taken as it ranks by the priors, so that a loser costs what was explained.
std::optional<SearchFailure> Rerank(const Space& space, const StepSimulator& simulate,
                                    const search::ForcedChoices& forced, std::vector<Scored>& found,
                                    search::Explanation& explanation) {
  const std::string id = "l2/" + space.model->name + "/plan";
  struct Simulated {
    Scored candidate;
    size_t rank = 0;  // by the priors, from 1
    search::CostVector cost;
  };
  std::map<std::string, std::optional<double>> seconds;  // by plan
  std::vector<Simulated> all;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [it, fresh] = seconds.try_emplace(PlanKey(space, found[i].choice));
    if (fresh) it->second = simulate(Build(space, found[i].choice));
    if (!it->second) continue;  // it cannot be placed
    Simulated& one = all.emplace_back();
    one.candidate = found[i];
    one.rank = i + 1;
    one.cost = {{"simulated", found[i].score.steps * *it->second, "s", "prior"},
                {"plan_step", *it->second, "s", "analytical"},
                {"time_to_target", found[i].score.time_to_target(), "s", "prior"}};
  }
  if (all.empty()) return std::nullopt;  // the next lowering says why
  std::stable_sort(all.begin(), all.end(), [](const Simulated& a, const Simulated& b) {
    return a.cost[0].value < b.cost[0].value;
  });
  for (const auto& [other, label] : forced) {
    if (!other.starts_with("l2/")) continue;
    const std::string rank = other == id ? label : "1";
    const auto at = std::find_if(all.begin(), all.end(), [&](const Simulated& one) {
      return std::to_string(one.rank) == rank;
    });
    if (at != all.end()) {
      std::rotate(all.begin(), at, at + 1);
    } else if (other == id) {
      return NoCandidates{"'" + label + "' is no candidate of '" + id + "'",
                          "candidates: 1 to " + std::to_string(found.size()),
                          {}};
    }
  }
  search::Decision decision;
  decision.id = id;
  decision.chosen = std::to_string(all.front().rank);
  decision.cost = all.front().cost;
  decision.forced = forced.contains(id);
  for (size_t i = 1; i < all.size(); ++i) {
    search::Loser loser;
    loser.label = std::to_string(all[i].rank);
    loser.cost = all[i].cost;
    loser.difference = search::Difference(loser.cost, decision.cost);
    const bool slower = all[i].cost[1].value > all.front().cost[1].value;
    loser.decided_by = (slower ? "the simulated plan; " : "predicted steps; ") +
                       Differing(space, all[i].candidate.choice, all.front().candidate.choice);
    decision.losers.push_back(std::move(loser));
  }
  explanation.decisions.push_back(std::move(decision));
  found.clear();
  for (Simulated& one : all) found.push_back(std::move(one.candidate));
  return std::nullopt;
}

// What an annotation fixes must be sound in the method that it lands in; the candidates in which it
// is not are dropped.
std::optional<SearchFailure> CheckAnnotations(const Space& space,
                                              std::vector<search::Candidate<Module>>& candidates) {
  const auto hints = space.spec->hints.find(space.model->name);
  if (hints == space.spec->hints.end() || space.spec->models.size() != 1) return std::nullopt;
  std::optional<SearchFailure> first;
  std::erase_if(candidates, [&](const search::Candidate<Module>& candidate) {
    support::Diagnostics diagnostics;
    if (Verify(candidate.target, diagnostics)) return false;
    const support::Diagnostic& error = diagnostics.all().front();
    if (!first) {
      first = NoCandidates{error.message, error.fix.empty() ? error.label : error.fix,
                           hints->second.front().span};
    }
    return true;
  });
  return candidates.empty() ? first : std::nullopt;
}

// One model's methods, best first; each candidate holds them alone.
search::LoweringResult<Module> LowerModel(const l3::Module& spec, const l3::Model& model,
                                          const LowerConstraints& constraints, const Methods* first,
                                          const search::LoweringOptions& options) {
  search::LoweringResult<Module> result;
  search::Explanation& explanation = result.explanation;
  explanation.lowering = "l3->l2";
  explanation.report.work_budget = options.budget.work;
  explanation.report.stop_reason = "not started";

  const Priors& priors = constraints.priors != nullptr ? *constraints.priors : BuiltinPriors();
  SpaceBuilder builder(spec, model, priors, constraints.rows, first, explanation);
  result.failure = builder.Build();
  if (result.failure) return result;
  const Space space = builder.Take();
  const ReferenceMachine reference(space.priors);
  const Scorer scorer(space, constraints.estimator != nullptr ? *constraints.estimator : reference);

  if (rewrites::Find("lower_l3_l2") == nullptr) {
    result.failure = NoCandidates{"the rules of rewrites/lower_l3_l2.egg are not in this build",
                                  "build with the rule file",
                                  {}};
    return result;
  }
  SpaceGraph graph(space, scorer, options.budget, options.rules);
  Searcher searcher(space, scorer, graph, options);
  auto report = [&] {
    explanation.report.egraph_nodes = graph.node_count();
    explanation.report.egraph_classes = graph.class_count();
    explanation.report.work = graph.work();
    explanation.report.stop_reason = graph.stop_reason();
    explanation.report.scored = searcher.scored();
  };
  report();
  if (graph.timeout()) {
    result.failure = *graph.timeout();
    return result;
  }
  explanation.report.candidates = Saturate(graph.CountCandidates());
  result.failure = searcher.CheckForced();
  if (result.failure) return result;

  auto timeout = [&](std::string doing) {
    return search::Timeout{graph.work(), options.budget.work, std::move(doing),
                           "tighten depth(n) or width(n), or give more work"};
  };
  std::vector<Scored> found;
  if (options.mode == search::Mode::kEGraph) {
    if (auto best = searcher.Best(searcher.forced())) found.push_back(std::move(*best));
  } else {
    auto one = options.mode == search::Mode::kGreedy ? searcher.Greedy() : searcher.First();
    if (one) found.push_back(std::move(*one));
  }
  report();
  if (graph.exhausted()) {
    result.failure = timeout("extracting");
    return result;
  }
  if (found.empty()) {
    result.failure = Infeasible(space, graph, searcher.forced());
    return result;
  }
  const uint64_t scored = searcher.scored();
  if (options.mode == search::Mode::kEGraph && scored > options.budget.candidates) {
    result.failure = TooMany(space, scored, options.budget.candidates);
    return result;
  }
  if (options.mode == search::Mode::kEGraph) {
    found = searcher.Top(std::move(found.front()), options.budget.top);
    if (constraints.simulate && spec.models.size() == 1 && found.size() > 1) {
      result.failure = Rerank(space, constraints.simulate, options.forced, found, explanation);
      if (result.failure) return result;
    }
  }
  searcher.Explain(found.front(), options.mode == search::Mode::kEGraph, explanation);
  graph.Trace(explanation);
  report();
  explanation.report.scored = scored;
  if (graph.exhausted()) {
    explanation.report.stop_reason += "; the work budget ended while losers were compared";
  }
  for (const Scored& candidate : found) {
    result.candidates.push_back({Build(space, candidate.choice), scorer.Cost(candidate.score)});
  }
  result.failure = CheckAnnotations(space, result.candidates);
  return result;
}

// What the search for one more model adds to the whole.
void Join(search::Explanation& all, search::Explanation one) {
  for (search::Decision& d : one.decisions) all.decisions.push_back(std::move(d));
  for (search::Pruned& p : one.pruned) all.pruned.push_back(std::move(p));
  all.report.egraph_nodes += one.report.egraph_nodes;
  all.report.egraph_classes += one.report.egraph_classes;
  all.report.work += one.report.work;
  all.report.scored += one.report.scored;
  all.report.candidates = Saturate(static_cast<double>(all.report.candidates) *
                                   static_cast<double>(one.report.candidates));
}

// Forced choices of the other models are not this one's to refuse.
search::LoweringOptions OptionsFor(const l3::Module& spec, const l3::Model& model,
                                   const search::LoweringOptions& options) {
  search::LoweringOptions own = options;
  std::erase_if(own.forced, [&](const auto& choice) {
    return std::any_of(spec.models.begin(), spec.models.end(), [&](const l3::Model& other) {
      return other.name != model.name && choice.first.starts_with("l2/" + other.name + "/");
    });
  });
  return own;
}

// For a goal that is no front.
search::LoweringResult<Module> LowerGoal(const l3::Module& spec,
                                         const LowerConstraints& constraints,
                                         const search::LoweringOptions& options) {
  search::LoweringResult<Module> result;
  for (const l3::Model& model : spec.models) {
    const bool is_first = &model == &spec.models.front();
    const Methods* first = is_first ? nullptr : &result.candidates.front().target.methods.front();
    auto one = LowerModel(spec, model, constraints, first, OptionsFor(spec, model, options));
    if (is_first) {
      result = std::move(one);
    } else {
      Join(result.explanation, std::move(one.explanation));
      result.failure = std::move(one.failure);
    }
    if (result.failure) return result;
    if (is_first) continue;
    // The others of the first model's candidates keep what its best is sampled by and for how long.
    const Methods best = result.candidates.front().target.methods.front();
    std::erase_if(result.candidates, [&](const auto& candidate) {
      const Methods& methods = candidate.target.methods.front();
      return !SameForm(methods.sample, best.sample) ||
             methods.phases.front().epochs != best.phases.front().epochs;
    });
    for (auto& candidate : result.candidates) {
      candidate.target.methods.push_back(one.best().methods.front());
      for (search::CostComponent& c : candidate.cost) {
        for (const search::CostComponent& other : one.candidates.front().cost) {
          if (c.name == other.name && c.name != "steps") c.value += other.value;
        }
      }
    }
  }
  if (spec.models.empty()) {
    result.failure = NoCandidates{"the specification has no model", "declare one", {}};
  }
  return result;
}

// The point that is picked or forced; the middle when none is.
std::optional<size_t> PointOf(const std::vector<FrontPoint>& front, std::optional<size_t> pick,
                              const search::ForcedChoices& forced) {
  if (pick) return *pick >= 1 && *pick <= front.size() ? std::optional(*pick - 1) : std::nullopt;
  const auto choice = forced.find(kFrontDecision);
  if (choice == forced.end()) return MiddleOf(front);
  for (size_t i = 0; i < front.size(); ++i) {
    if (front[i].label == choice->second) return i;
  }
  return std::nullopt;
}

}  // namespace

search::LoweringResult<Module> LowerToL2(const l3::Module& spec,
                                         const LowerConstraints& constraints,
                                         const search::LoweringOptions& options) {
  const std::vector<FrontPoint> front = Front(spec);
  if (front.empty() && !constraints.pick) return LowerGoal(spec, constraints, options);
  search::LoweringResult<Module> result;
  result.explanation.lowering = "l3->l2";
  if (front.empty()) {
    result.failure = NoCandidates{"there is no front to pick from: the goal is one loss",
                                  "leave out --pick, or write goal: pareto([…])", spec.goal.span};
    return result;
  }
  const auto at = PointOf(front, constraints.pick, options.forced);
  if (!at) {
    std::vector<std::string> points;
    for (size_t i = 0; i < front.size(); ++i) {
      points.push_back(std::to_string(i + 1) + ": " + front[i].label);
    }
    result.failure =
        NoCandidates{"the front has " + std::to_string(front.size()) + " points, and not that one",
                     "points: " + support::Join(points), spec.goal.span};
    return result;
  }
  search::LoweringOptions rest = options;
  rest.forced.erase(kFrontDecision);
  result = LowerGoal(AtPoint(spec, front[*at]), constraints, rest);
  if (result.failure) return result;
  // Every point takes the same steps of the same work; which is wanted is the user's to say.
  search::Decision decision;
  decision.id = kFrontDecision;
  decision.chosen = front[*at].label;
  decision.cost = result.candidates.front().cost;
  decision.forced = constraints.pick || options.forced.contains(kFrontDecision);
  for (size_t i = 0; i < front.size(); ++i) {
    if (i == *at) continue;
    search::Loser other;
    other.label = front[i].label;
    other.cost = decision.cost;
    other.difference = search::Difference(other.cost, decision.cost);
    other.decided_by = "--pick " + std::to_string(i + 1) + " takes it";
    decision.losers.push_back(std::move(other));
  }
  auto& decisions = result.explanation.decisions;
  decisions.insert(decisions.begin(), std::move(decision));
  return result;
}

}  // namespace l3c::l2
