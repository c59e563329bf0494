#include "layers/l3/verify.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l3/checks.h"
#include "layers/l3/symbols.h"
#include "layers/support/units.h"

namespace l3c::l3 {
namespace {

using support::Kind;

struct Check {
  Kind kind;
  void (*run)(const Module& module, const Symbols& symbols, Reporter& report);
};

// Where a check relies on earlier ones, they come in an earlier group.
constexpr Check kFirst[] = {{Kind::kSafety, CheckReferences}};
constexpr Check kSecond[] = {{Kind::kResourceBound, CheckFiniteness}};
constexpr Check kThird[] = {{Kind::kSafety, CheckLossSignatures},
                            {Kind::kConsistency, CheckDomains},
                            {Kind::kConsistency, CheckConstraints}};

template <size_t N>
bool RunAll(const Check (&checks)[N], const Module& module, const Symbols& symbols,
            support::Diagnostics& diagnostics) {
  const size_t before = diagnostics.all().size();
  for (const Check& check : checks) {
    Reporter report(check.kind, diagnostics);
    check.run(module, symbols, report);
  }
  return diagnostics.all().size() == before;
}

// ---- References -------------------------------------------------------------------------------

void CheckRef(const Ref& ref, const Symbols& symbols, Reporter& report);

// A value that a model can read: it has a domain.
void CheckInput(const Ref& ref, const Symbols& symbols, Reporter& report) {
  if (ref.kind == Ref::Kind::kField || ref.kind == Ref::Kind::kOutput) {
    return CheckRef(ref, symbols, report);
  }
  report.Error(ref.span, "'" + PrintRef(ref) + "' is neither a field nor a model's output");
}

void CheckRef(const Ref& ref, const Symbols& symbols, Reporter& report) {
  for (const Ref& argument : ref.arguments) CheckInput(argument, symbols, report);
  bool found = false;
  switch (ref.kind) {
    case Ref::Kind::kUnresolved:
      break;
    case Ref::Kind::kField:
      found = symbols.FindField(ref.owner, ref.member) != nullptr;
      break;
    case Ref::Kind::kOutput:
    case Ref::Kind::kActivations:
    case Ref::Kind::kParams:
      found = symbols.FindModel(ref.owner) != nullptr;
      break;
    case Ref::Kind::kLoss:
      found = symbols.FindLoss(ref.owner) != nullptr;
      break;
    case Ref::Kind::kTerm:
      found = symbols.FindTerm(ref.owner, ref.member) != nullptr;
      break;
  }
  if (!found) report.Error(ref.span, "'" + PrintRef(ref) + "' refers to nothing that is declared");
}

void CheckGoalRefs(const Goal& goal, const Symbols& symbols, Reporter& report) {
  for (const Ref& target : goal.targets) CheckRef(target, symbols, report);
  for (size_t i = 0; i < goal.models.size(); ++i) {
    if (symbols.FindModel(goal.models[i])) continue;
    const Span span = i < goal.model_spans.size() ? goal.model_spans[i] : goal.span;
    report.Error(span, "the goal updates '" + goal.models[i] + "', which is not a model");
  }
  for (const Goal& turn : goal.turns) CheckGoalRefs(turn, symbols, report);
}

class UniqueNames {
 public:
  explicit UniqueNames(Reporter& report) : report_(report) {}
  void Add(const std::string& name, Span span) {
    const auto [first, inserted] = seen_.emplace(name, span);
    if (inserted) return;
    report_.Error(span, "'" + name + "' is declared twice")
        .With({first->second, "first declared here"});
  }

 private:
  Reporter& report_;
  std::map<std::string, Span> seen_;
};

// ---- Finiteness -------------------------------------------------------------------------------

// A goal names losses one by one; more than this many is a mistake, and each costs a walk over
// what it depends on.
constexpr size_t kMaxAims = 64;

void CheckProperty(const Property& property, Reporter& report) {
  const auto bound = [&](int64_t max) {
    if (property.count <= max) return;
    report.Error(property.span, std::string(PropertyName(property.kind)) + "(" +
                                    support::PrintInteger(property.count) +
                                    ") is beyond the bound of " + support::PrintInteger(max));
  };
  switch (property.kind) {
    case Property::Kind::kDepth:
      return bound(kMaxDepth);
    case Property::Kind::kWidth:
      return bound(kMaxWidth);
    case Property::Kind::kParamBudget:
      return bound(kMaxParams);
    case Property::Kind::kLatencyBudget:
      if (property.seconds > kMaxLatencySeconds) {
        report.Error(property.span, "latency_budget is beyond the bound of a day");
      }
      return;
    case Property::Kind::kCausal:
    case Property::Kind::kAutoregressive:
    case Property::Kind::kEquivariant:
      return;
  }
}

// The models that a reference reads, arguments included.
void AddModels(const Ref& ref, const Symbols& symbols, std::vector<const Model*>& models) {
  if (ref.kind == Ref::Kind::kOutput) models.push_back(symbols.FindModel(ref.owner));
  for (const Ref& argument : ref.arguments) AddModels(argument, symbols, models);
}

// Depth-first over "reads", without recursion: a chain of models may be as long as the file.
void CheckCycles(const Module& module, const Symbols& symbols, Reporter& report) {
  enum class State { kOpen, kDone };
  std::map<const Model*, State> states;
  struct Visit {
    const Model* model;
    std::vector<const Model*> reads;
    size_t next = 0;
  };
  const auto visit = [&](const Model* model) {
    Visit at{model, {}};
    // `judge(x.out)` reads judge's meaning and x's output, but not judge's own inputs.
    for (const Ref& ref : model->in) AddModels(ref, symbols, at.reads);
    states[model] = State::kOpen;
    return at;
  };
  for (const Model& root : module.models) {
    if (states.count(&root) > 0) continue;
    std::vector<Visit> path;
    path.push_back(visit(&root));
    while (!path.empty()) {
      Visit& at = path.back();
      if (at.next == at.reads.size()) {
        states[at.model] = State::kDone;
        path.pop_back();
        continue;
      }
      const Model* read = at.reads[at.next++];
      const auto state = states.find(read);
      if (state == states.end()) {
        path.push_back(visit(read));
      } else if (state->second == State::kOpen) {
        auto& error = report.Error(at.model->span, "model '" + at.model->name +
                                                       "' depends on itself: its input is made "
                                                       "from its own output");
        constexpr size_t kMaxShown = 8;
        size_t shown = 0;
        bool inside = false;
        for (const Visit& step : path) {
          inside = inside || step.model == read;
          if (!inside || step.model == at.model || ++shown > kMaxShown) continue;
          error.With({step.model->span, "by way of '" + step.model->name + "'"});
        }
        error.Fix("break the cycle; recurrence inside a model is chosen at L2");
      }
    }
  }
}

void CheckAims(const Goal& goal, Reporter& report) {
  const size_t aims = goal.targets.size() + goal.turns.size();
  if (aims > kMaxAims) {
    report.Error(goal.span, "the goal has " + std::to_string(aims) + " parts; the bound is " +
                                std::to_string(kMaxAims));
  }
}

}  // namespace

void CheckReferences(const Module& module, const Symbols& symbols, Reporter& report) {
  UniqueNames owners(report);
  for (const Data& data : module.data) {
    owners.Add(data.name, data.span);
    UniqueNames fields(report);
    for (const Field& field : data.fields) fields.Add(field.name, field.span);
  }
  for (const Model& model : module.models) {
    owners.Add(model.name, model.span);
    for (const Ref& ref : model.in) CheckInput(ref, symbols, report);
  }
  for (const Loss& loss : module.losses) {
    owners.Add(loss.name, loss.span);
    UniqueNames terms(report);
    for (const Term& term : loss.terms) {
      terms.Add(term.name, term.span);
      for (const Ref& ref : term.reads) CheckRef(ref, symbols, report);
      if (term.value) VerifyExpr(*term.value, report.diagnostics());
    }
  }
  CheckGoalRefs(module.goal, symbols, report);
}

void CheckFiniteness(const Module& module, const Symbols& symbols, Reporter& report) {
  for (const Data& data : module.data) {
    for (const Field& field : data.fields) {
      VerifyDomain(field.domain, "field '" + field.name + "'", field.domain_span,
                   report.diagnostics());
    }
  }
  for (const Model& model : module.models) {
    VerifyDomain(model.out, "the output of '" + model.name + "'", model.out_span,
                 report.diagnostics());
    for (const Property& property : model.properties) CheckProperty(property, report);
  }
  for (const Loss& loss : module.losses) {
    for (const Term& term : loss.terms) {
      if (!std::isfinite(term.weight)) {
        report.Error(term.weight_span, "the weight of '" + term.name + "' must be finite");
      }
      if (term.kind == LossKind::kNorm && !std::isfinite(term.p)) {
        report.Error(term.kind_span, "the exponent p of a norm must be finite");
      }
    }
  }
  CheckCycles(module, symbols, report);
  CheckAims(module.goal, report);
}

bool Verify(const Module& module, support::Diagnostics& diagnostics) {
  const Symbols symbols(module);
  return RunAll(kFirst, module, symbols, diagnostics) &&
         RunAll(kSecond, module, symbols, diagnostics) &&
         RunAll(kThird, module, symbols, diagnostics);
}

}  // namespace l3c::l3
