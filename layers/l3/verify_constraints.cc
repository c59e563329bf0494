// Constraint agreement (consistency): a model's properties against one another and against its
// domains, and a goal against what its losses depend on.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layers/l3/checks.h"
#include "layers/support/units.h"

namespace l3c::l3 {
namespace {

constexpr std::array<std::string_view, 5> kGroups = {"translation", "reflection", "permutation",
                                                     "c4", "d4"};

bool IsIntegerDType(tensor::DType dtype) {
  return !tensor::IsFloat(dtype) && dtype != tensor::DType::kBool;
}

// Whether a value of domain `out` can stand where `in` is read: the same domain, a class where a
// label is read, or one number where one number is read.
bool CanFeedBack(const Domain& out, const Domain& in) {
  if (out == in) return true;
  const bool label = (in.kind == Domain::Kind::kScalar || in.kind == Domain::Kind::kTensor) &&
                     NumElements(in) == 1 && IsIntegerDType(in.dtype);
  if (out.kind == Domain::Kind::kDist) return label;
  return out.kind != Domain::Kind::kSequence && in.kind != Domain::Kind::kSequence &&
         ExampleShape(out) == ExampleShape(in) && ExampleDType(out) == ExampleDType(in);
}

class ModelChecker {
 public:
  ModelChecker(const Model& model, const Symbols& symbols, Reporter& report)
      : model_(model), report_(report) {
    for (const Ref& ref : model.in) inputs_.push_back(symbols.DomainOf(ref));
  }

  void Run() {
    CheckRepeats();
    for (const Property& property : model_.properties) {
      switch (property.kind) {
        case Property::Kind::kDepth:
        case Property::Kind::kWidth:
        case Property::Kind::kParamBudget:
          if (property.count < 1) RefuseEmpty(property);
          break;
        case Property::Kind::kLatencyBudget:
          if (!(property.seconds > 0)) RefuseEmpty(property);
          break;
        case Property::Kind::kCausal:
          CheckCausal(property);
          break;
        case Property::Kind::kAutoregressive:
          CheckAutoregressive(property);
          break;
        case Property::Kind::kEquivariant:
          CheckEquivariant(property);
          break;
      }
    }
  }

 private:
  void CheckRepeats() {
    std::vector<const Property*> seen;
    for (const Property& property : model_.properties) {
      // Several symmetries may hold together; of all else there is one.
      const auto first = std::find_if(seen.begin(), seen.end(), [&](const Property* p) {
        return p->kind == property.kind &&
               (p->kind != Property::Kind::kEquivariant || p->group == property.group);
      });
      if (first == seen.end()) {
        seen.push_back(&property);
        continue;
      }
      report_
          .Error(property.span, "property '" + std::string(PropertyName(property.kind)) +
                                    "' of model '" + model_.name + "' is given twice")
          .With({(*first)->span, "first given here"});
    }
  }

  void RefuseEmpty(const Property& property) {
    const bool time = property.kind == Property::Kind::kLatencyBudget;
    const std::string bound =
        time ? support::PrintSeconds(property.seconds) : support::PrintInteger(property.count);
    report_
        .Error(property.span,
               std::string(PropertyName(property.kind)) + "(" + bound + ") admits no model")
        .Label("expected a positive bound");
  }

  void CheckCausal(const Property& property) {
    if (HasSequenceInput()) return;
    report_
        .Error(property.span, "causal orders outputs and inputs in time, but no input of '" +
                                  model_.name + "' is a sequence")
        .Label(InputPhrase())
        .Fix("declare the field as sequence(…, max_len), or drop causal");
  }

  void CheckAutoregressive(const Property& property) {
    const Domain& out = model_.out;
    for (const Domain* in : inputs_) {
      if (CanFeedBack(out, *in)) return;
      if (in->kind != Domain::Kind::kSequence) continue;
      // The next element, or one for each position.
      if (CanFeedBack(out, in->parts[0])) return;
      if (out.kind == Domain::Kind::kSequence && CanFeedBack(out.parts[0], in->parts[0])) return;
    }
    auto& error = report_.Error(
        property.span, "autoregressive feeds the output back as input, but '" + model_.name +
                           "' makes " + PrintDomain(out) + " from " + InputPhrase());
    if (const Property* depth = model_.FindProperty(Property::Kind::kDepth)) {
      error.With({depth->span,
                  "with depth(" + std::to_string(depth->count) + ") it is a feed-forward chain"});
    }
    error.With({model_.out_span, "the output is declared here"});
    error.Fix("read a sequence whose elements the output can continue, or drop autoregressive");
  }

  void CheckEquivariant(const Property& property) {
    const std::string& group = property.group;
    if (std::find(kGroups.begin(), kGroups.end(), group) == kGroups.end()) {
      const std::vector<std::string> groups(kGroups.begin(), kGroups.end());
      auto& error = report_.Error(property.span, "unknown symmetry group '" + group + "'");
      error.Label("expected translation, reflection, permutation, c4 or d4");
      const std::string closest = support::ClosestMatch(group, groups);
      if (!closest.empty()) error.Fix("did you mean '" + closest + "'?");
      return;
    }
    const bool reorders = group == "permutation" || group == "reflection";
    for (const Property::Kind ordered :
         {Property::Kind::kCausal, Property::Kind::kAutoregressive}) {
      const Property* other = model_.FindProperty(ordered);
      if (!reorders || !other) continue;
      report_
          .Error(property.span, "equivariant(" + group +
                                    ") treats all orders of the input alike, " +
                                    std::string(PropertyName(ordered)) + " does not")
          .With({other->span, std::string(PropertyName(ordered)) + " is required here"})
          .Fix("drop one of the two");
      return;
    }
    if (std::any_of(inputs_.begin(), inputs_.end(),
                    [&](const Domain* in) { return HasSymmetry(*in, group); })) {
      return;
    }
    report_
        .Error(property.span,
               "equivariant(" + group + ") has nothing to act on in " + InputPhrase())
        .Label(group == "c4" || group == "d4" ? "expected a square image among the inputs"
                                              : "expected an input with an axis");
  }

  static bool HasSymmetry(const Domain& in, const std::string& group) {
    const tensor::Shape& shape = in.shape;
    if (group == "c4" || group == "d4") {
      if (in.kind != Domain::Kind::kTensor || shape.size() < 2) return false;
      // [rows, columns], channels before or after.
      const size_t rank = shape.size();
      return shape[rank - 2] == shape[rank - 1] || (rank == 3 && shape[0] == shape[1]);
    }
    if (in.kind == Domain::Kind::kSequence) return true;
    if (in.kind == Domain::Kind::kTable) return group == "permutation";
    return in.kind == Domain::Kind::kTensor && NumElements(in) > 1;
  }

  bool HasSequenceInput() const {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [](const Domain* in) { return in->kind == Domain::Kind::kSequence; });
  }

  std::string InputPhrase() const {
    std::string text;
    for (const Domain* in : inputs_) text += (text.empty() ? "" : " and ") + PrintDomain(*in);
    return text;
  }

  const Model& model_;
  Reporter& report_;
  std::vector<const Domain*> inputs_;
};

// ---- Goals ------------------------------------------------------------------------------------

// Names of all models that a reference depends on, through inputs of models too.
class Dependencies {
 public:
  explicit Dependencies(const Symbols& symbols) : symbols_(symbols) {}

  void Add(const Ref& ref) {
    std::vector<const Ref*> open = {&ref};
    while (!open.empty()) {
      const Ref& next = *open.back();
      open.pop_back();
      for (const Ref& argument : next.arguments) open.push_back(&argument);
      switch (next.kind) {
        case Ref::Kind::kField:
          environment_ = environment_ || IsEnvironment(next.owner);
          break;
        case Ref::Kind::kUnresolved:
          break;
        case Ref::Kind::kLoss:
          for (const Term& term : symbols_.FindLoss(next.owner)->terms) AddReads(term, open);
          break;
        case Ref::Kind::kTerm:
          AddReads(*symbols_.FindTerm(next.owner, next.member), open);
          break;
        case Ref::Kind::kOutput:
        case Ref::Kind::kActivations:
        case Ref::Kind::kParams: {
          const Model* model = symbols_.FindModel(next.owner);
          if (!models_.insert(model->name).second) break;
          for (const Ref& in : model->in) open.push_back(&in);
          break;
        }
      }
    }
  }

  // An environment answers to whatever model acts in it.
  bool Has(const std::string& model) const { return environment_ || models_.count(model) > 0; }
  bool empty() const { return !environment_ && models_.empty(); }

 private:
  static void AddReads(const Term& term, std::vector<const Ref*>& open) {
    for (const Ref& ref : term.reads) open.push_back(&ref);
  }
  bool IsEnvironment(const std::string& data) const {
    return !symbols_.FindData(data)->environment.empty();
  }

  const Symbols& symbols_;
  std::set<std::string_view> models_;
  bool environment_ = false;
};

void CheckGoal(const Goal& goal, const Symbols& symbols, Reporter& report) {
  if (goal.kind == Goal::Kind::kPareto) {
    if (goal.targets.size() < 2) {
      report.Error(goal.span, "pareto trades at least two losses against each other")
          .Fix("use minimize(…) for one, or name a second");
    }
    std::set<std::string> seen;
    for (const Ref& target : goal.targets) {
      if (!seen.insert(PrintRef(target)).second) {
        report.Error(target.span, "'" + PrintRef(target) + "' stands twice in pareto");
      }
    }
  }
  if (goal.kind == Goal::Kind::kAlternate && goal.turns.size() < 2) {
    report.Error(goal.span, "alternate takes at least two turns").Fix("use minimize(…) for one");
  }
  std::set<std::string> named;
  for (const Ref& target : goal.targets) {
    Dependencies dependencies(symbols);
    dependencies.Add(target);
    if (dependencies.empty()) {
      report.Error(target.span,
                   "'" + PrintRef(target) + "' depends on no model, so nothing can improve it");
      continue;
    }
    for (size_t i = 0; i < goal.models.size(); ++i) {
      const std::string& model = goal.models[i];
      const Span span = i < goal.model_spans.size() ? goal.model_spans[i] : goal.span;
      if (!named.insert(model).second) {
        report.Error(span, "model '" + model + "' stands twice");
      } else if (!dependencies.Has(model)) {
        report
            .Error(span, "'" + PrintRef(target) + "' does not depend on model '" + model +
                             "', so this goal cannot update it")
            .With({symbols.FindModel(model)->span, "'" + model + "' is declared here"});
      }
    }
  }
  for (const Goal& turn : goal.turns) CheckGoal(turn, symbols, report);
}

}  // namespace

void CheckConstraints(const Module& module, const Symbols& symbols, Reporter& report) {
  for (const Model& model : module.models) ModelChecker(model, symbols, report).Run();
  CheckGoal(module.goal, symbols, report);
}

}  // namespace l3c::l3
