#include "layers/l2/space_builder.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l2/form.h"
#include "layers/l2/inputs.h"
#include "layers/l2/layers.h"
#include "layers/l2/methods.h"
#include "layers/l2/objective.h"
#include "layers/l2/stage.h"
#include "layers/l2/symmetry.h"
#include "layers/l2/verify.h"
#include "layers/l3/domain.h"
#include "layers/support/escape_hatch.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using search::NoCandidates;
using search::SearchFailure;
using support::PrintInteger;

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
      if (MayUnroll()) space_.kinds.push_back(StageKind::kRecurrent);
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
    space_.kinds.push_back(StageKind::kMixture);
    space_.kinds.push_back(StageKind::kResidual);
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
        case StageKind::kResidual:
          return false;
        case StageKind::kMixture:
          return lacks({"softmax"});
        case StageKind::kRecurrent:
          return lacks({"tanh"});
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

  // A recurrence counts as many stages as it is unrolled to. Where depth(n) leaves no room for them
  // beside a chain as deep as any, there is none.
  bool MayUnroll() {
    const int64_t steps = space_.input[0];
    const auto depth = space_.model->depth();
    const int64_t chain = static_cast<int64_t>(space_.priors.depth_factors.size());
    if (steps > kMaxUnrolled) return false;
    if (!depth || *depth - chain >= steps) return true;
    explanation_.pruned.push_back({"recurrent stages over " + PrintInteger(steps) + " elements",
                                   "each element counts as a stage: depth(" +
                                       PrintInteger(steps + chain) + ") or none would allow them",
                                   1});
    return false;
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
          if (IsGroupOfActions(property.group)) {
            if (auto failure = TakeActions(property, positions_out)) return failure;
            continue;
          }
          space_.asked.push_back(property.group);
          if (property.group == "permutation") space_.placed = false;
          break;
        default:
          continue;
      }
      if (!LegalReadouts(space_).empty()) continue;
      const std::string what = property.group.empty() ? name : name + "(" + property.group + ")";
      return None(
          "no network of the layers that are searched over can be shown to be '" + what + "'",
          sequence || positions_out
              ? "give the output a position for each that is read, or leave out the property"
              : "read a sequence or an image, or leave out the property",
          property.span);
    }
    return std::nullopt;
  }

  // A symmetry that no stage keeps by itself: the mean over all actions has it.
  std::optional<SearchFailure> TakeActions(const l3::Property& property, bool positions_out) {
    const l3::Model& model = *space_.model;
    const bool turns = property.group != "reflection";
    const auto none = [&](const char* hint) {
      return None("no network of the layers that are searched over can be shown to be '" +
                      std::string(l3::PropertyName(property.kind)) + "(" + property.group + ")'",
                  hint, property.span);
    };
    if (positions_out) return none("give an output without positions, or leave out the property");
    if (model.in.size() != 1) return none("read one field, or leave out the property");
    const Shape& in = space_.input;
    if (turns && (in.size() < 2 || in.size() > 3 || in[0] != in[1])) {
      return none("read a square image [n, n] or [n, n, channels], or leave out the property");
    }
    if (in.empty()) return none("read what has an axis, or leave out the property");
    const std::string had = space_.actions;
    space_.action_axis = turns ? 1 : ReflectionAxis(*space_.spec->DomainOf(model.in[0]));
    // Mirrors and quarter turns together are d4.
    space_.actions = had.empty() || had == property.group ? property.group : "d4";
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
      if (const support::EscapeHatch* hatch = LossHint(term)) {
        std::optional<SearchFailure> failure;
        const std::optional<Form> form = FormOf(*hatch, Family::kLoss, failure);
        if (!form) return failure;
        if (!FindLoss(form->name)->accepts(term.target_kind)) {
          return None(PrintForm(*form, Family::kLoss) + " does not compare " +
                          l3::PrintRef(term.predicted) + " with " + l3::PrintRef(term.target),
                      "the losses of docs/l2.md say what they compare", hatch->span);
        }
        FormPrior fixed;
        fixed.label = PrintForm(*form, Family::kLoss);
        fixed.form = *form;
        space_.priors.losses.push_back(std::move(fixed));
        space_.fitting_losses.push_back({space_.priors.losses.size() - 1});
        space_.loss_terms.push_back(term.choice);
        explanation_.pruned.push_back(
            {"other losses of " + term.choice, support::PrintEscapeHatch(*hatch), 0});
        continue;
      }
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

  // The annotation of a term's loss, or null.
  const support::EscapeHatch* LossHint(const ObjectiveTerm& term) const {
    for (const l3::Loss& loss : space_.spec->losses) {
      if (loss.FindTerm(term.term->name) != term.term) continue;
      const auto it = space_.spec->hints.find(loss.name + "." + term.term->name);
      if (it == space_.spec->hints.end()) continue;
      for (const support::EscapeHatch& hatch : it->second) {
        if (hatch.layer == "l2" && hatch.directive == "loss") return &hatch;
      }
    }
    return nullptr;
  }

  // What the annotation says, as this layer reads it; else `failure`, which points at it.
  std::optional<Form> FormOf(const support::EscapeHatch& hatch, Family family,
                             std::optional<SearchFailure>& failure) const {
    const support::SourceFile text("annotation", hatch.args);
    support::Diagnostics diagnostics(&text);
    support::ParserBase parser(text, diagnostics);
    std::optional<Form> form = ParseForm(parser, family);
    if (form && !parser.AtEnd()) parser.ErrorExpected("the end of the annotation");
    if (diagnostics.has_errors()) {
      const support::Diagnostic& first = diagnostics.all().front();
      failure = None(first.message, first.fix.empty() ? first.label : first.fix, hatch.span);
      return std::nullopt;
    }
    form->span = {};
    return form;
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
      std::optional<SearchFailure> failure;
      std::optional<Form> form = FormOf(hatch, family->second, failure);
      if (!form) return failure;
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

}  // namespace

std::optional<SearchFailure> BuildSpace(const l3::Module& spec, const l3::Model& model,
                                        const Priors& priors, std::optional<int64_t> rows,
                                        const Methods* first, search::Explanation& explanation,
                                        Space& space) {
  SpaceBuilder builder(spec, model, priors, rows, first, explanation);
  auto failure = builder.Build();
  if (!failure) space = builder.Take();
  return failure;
}

}  // namespace l3c::l2
