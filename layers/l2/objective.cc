#include "layers/l2/objective.h"

#include "layers/l3/domain.h"
#include "layers/l3/ir.h"

namespace l3c::l2 {
namespace {

using l3::Domain;
using support::Diagnostics;
using support::Kind;

bool IsInteger(tensor::DType dtype) { return !tensor::IsFloat(dtype); }

// How the field looks to a loss; nothing when no loss can compare the two.
std::optional<TargetKind> KindOfTarget(const Domain& out, const Domain& target) {
  const int64_t elements = l3::NumElements(target);
  if (const int64_t classes = ClassesOf(out); classes > 0) {
    // One class index a distribution, or a distribution itself.
    if (ClassesOf(target) == 0 && IsInteger(l3::ExampleDType(target))) {
      return elements * classes == l3::NumElements(out) ? std::optional(TargetKind::kLabel)
                                                        : std::nullopt;
    }
    if (ClassesOf(target) != 0 && ClassesOf(target) != classes) return std::nullopt;
    return elements == l3::NumElements(out) ? std::optional(TargetKind::kDistribution)
                                            : std::nullopt;
  }
  return elements == l3::NumElements(out) ? std::optional(TargetKind::kTensor) : std::nullopt;
}

void NotSupported(Diagnostics& diagnostics, support::Span span, const std::string& what,
                  const std::string& supported) {
  diagnostics.Error(Kind::kConsistency, span, what + " cannot be trained yet")
      .Label("supported: " + supported);
}

// A term that compares the output of the model with a field.
bool ResolveComparison(const l3::Module& spec, const l3::Model& model, const l3::Term& term,
                       const l3::Ref& predicted, const l3::Ref& target, ObjectiveTerm& resolved,
                       Diagnostics& diagnostics) {
  if (predicted.kind != l3::Ref::Kind::kOutput || predicted.owner != model.name ||
      !predicted.arguments.empty() || target.kind != l3::Ref::Kind::kField) {
    NotSupported(diagnostics, term.kind_span,
                 "a " + std::string(l3::LossKindName(term.kind)) + " of other things than " +
                     model.name + ".out and a field",
                 model.name + ".out against a field of a data declaration");
    return false;
  }
  const Domain* domain = spec.DomainOf(target);
  const auto kind = KindOfTarget(model.out, *domain);
  if (!kind) {
    diagnostics
        .Error(Kind::kConsistency, target.span,
               l3::PrintRef(target) + " is " + l3::PrintDomain(*domain) + " and " + model.name +
                   ".out is " + l3::PrintDomain(model.out) + ": no loss compares them")
        .Label("expected a class index, or as many elements as the output");
    return false;
  }
  resolved.has_loss = true;
  resolved.target_kind = *kind;
  resolved.target = target;
  return true;
}

bool ResolveTerm(const l3::Module& spec, const l3::Model& model, const l3::Term& term,
                 ObjectiveTerm& resolved, Diagnostics& diagnostics) {
  switch (term.kind) {
    case l3::LossKind::kDivergence:
      return ResolveComparison(spec, model, term, term.reads[0], term.reads[1], resolved,
                               diagnostics);
    case l3::LossKind::kReconstruction:
      return ResolveComparison(spec, model, term, term.reads[1], term.reads[0], resolved,
                               diagnostics);
    case l3::LossKind::kNorm: {
      const l3::Ref& of = term.reads[0];
      const bool parameters = of.kind == l3::Ref::Kind::kParams && of.owner == model.name;
      const bool output =
          of.kind == l3::Ref::Kind::kOutput && of.owner == model.name && of.arguments.empty();
      if (!parameters && !output) {
        NotSupported(diagnostics, of.span, "a norm of " + l3::PrintRef(of),
                     model.name + ".params, " + model.name + ".out");
        return false;
      }
      // Beyond, f32 powers of ordinary values leave the range of f32.
      if (!(term.p >= 1 && term.p <= 8)) {
        NotSupported(diagnostics, term.kind_span, "a norm with this p", "p from 1 to 8");
        return false;
      }
      resolved.of_parameters = parameters;
      return true;
    }
    case l3::LossKind::kConstraint:
    case l3::LossKind::kContrastive:
    case l3::LossKind::kCustom:
      break;
  }
  NotSupported(diagnostics, term.kind_span,
               "loss kind '" + std::string(l3::LossKindName(term.kind)) + "'",
               "divergence, reconstruction, norm");
  return false;
}

}  // namespace

int64_t ClassesOf(const Domain& out) {
  if (out.kind == Domain::Kind::kDist) return out.size;
  if (out.kind == Domain::Kind::kSequence && out.parts[0].kind == Domain::Kind::kDist) {
    return out.parts[0].size;
  }
  return 0;
}

std::optional<Objective> ResolveObjective(const l3::Module& spec, const std::string& model,
                                          Diagnostics& diagnostics) {
  Objective objective;
  objective.model = spec.FindModel(model);
  const l3::Goal& goal = spec.goal;
  if (goal.kind != l3::Goal::Kind::kMinimize && goal.kind != l3::Goal::Kind::kMaximize) {
    NotSupported(diagnostics, goal.span,
                 goal.kind == l3::Goal::Kind::kPareto ? "a pareto goal" : "an alternate goal",
                 "minimize(loss), maximize(loss)");
    return std::nullopt;
  }
  const l3::Ref& aim = goal.targets.front();
  objective.loss = spec.FindLoss(aim.owner);
  if (objective.loss == nullptr) {
    NotSupported(diagnostics, goal.span, "a goal that is not a loss or one of its terms",
                 "minimize(loss), minimize(loss.term)");
    return std::nullopt;
  }
  bool ok = true;
  for (const l3::Term& term : objective.loss->terms) {
    if (aim.kind == l3::Ref::Kind::kTerm && term.name != aim.member) continue;
    ObjectiveTerm resolved;
    resolved.term = &term;
    resolved.weight = goal.kind == l3::Goal::Kind::kMaximize ? -term.weight : term.weight;
    if (ResolveTerm(spec, *objective.model, term, resolved, diagnostics)) {
      objective.terms.push_back(std::move(resolved));
    } else {
      ok = false;
    }
  }
  if (!ok) return std::nullopt;
  return objective;
}

std::vector<LossChoice> DefaultLosses(const Objective& objective) {
  std::vector<LossChoice> losses;
  for (const ObjectiveTerm& term : objective.terms) {
    if (term.has_loss) losses.push_back({term.term->name, DefaultLoss(term.target_kind)});
  }
  return losses;
}

}  // namespace l3c::l2
