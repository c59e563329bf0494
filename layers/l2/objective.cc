#include "layers/l2/objective.h"

#include <algorithm>
#include <map>
#include <set>

#include "layers/l2/expression.h"
#include "layers/l2/inputs.h"
#include "layers/l3/domain.h"
#include "layers/l3/ir.h"

namespace l3c::l2 {
namespace {

using l3::Domain;
using support::Diagnostics;
using support::Kind;

bool IsInteger(tensor::DType dtype) { return !tensor::IsFloat(dtype); }

// How the target looks to a loss; nothing when no loss can compare the two.
std::optional<TargetKind> KindOfTarget(const Domain& out, const Domain& target) {
  const int64_t elements = l3::NumElements(target);
  const int64_t classes = ClassesOf(out);
  if (classes > 0) {
    // One for each element of a sequence, else one.
    const int64_t places = l3::NumElements(out) / classes;
    if (ClassesOf(target) > 0) {
      return l3::ExampleShape(target) == l3::ExampleShape(out)
                 ? std::optional(TargetKind::kDistribution)
                 : std::nullopt;
    }
    if (IsInteger(l3::ExampleDType(target))) {
      return elements == places ? std::optional(TargetKind::kLabel) : std::nullopt;
    }
    return elements == l3::NumElements(out) ? std::optional(TargetKind::kDistribution)
                                            : std::nullopt;
  }
  return elements == l3::NumElements(out) ? std::optional(TargetKind::kTensor) : std::nullopt;
}

class Resolver {
 public:
  Resolver(const l3::Module& spec, Diagnostics& diagnostics)
      : spec_(spec), diagnostics_(diagnostics) {}

  std::optional<std::vector<Turn>> Run() {
    const l3::Goal& goal = spec_.goal;
    std::vector<Turn> turns;
    bool ok = true;
    switch (goal.kind) {
      case l3::Goal::Kind::kMinimize:
      case l3::Goal::Kind::kMaximize:
        ok = ResolveTurn(goal, turns.emplace_back());
        break;
      case l3::Goal::Kind::kAlternate:
        for (const l3::Goal& turn : goal.turns) ok = ResolveTurn(turn, turns.emplace_back()) && ok;
        break;
      case l3::Goal::Kind::kPareto:
        diagnostics_
            .Error(Kind::kConsistency, goal.span,
                   "a method trains for one point of a front, and pareto names the whole")
            .Label("the lowering from L3 picks a point")
            .Fix("write minimize(LOSS) with a weight for each of its terms");
        return std::nullopt;
    }
    if (!ok) return std::nullopt;
    NameChoices(turns);
    return turns;
  }

 private:
  bool ResolveTurn(const l3::Goal& goal, Turn& turn) {
    turn.goal = &goal;
    const l3::Ref& aim = goal.targets.front();
    const double sign = goal.kind == l3::Goal::Kind::kMaximize ? -1 : 1;
    bool ok = true;
    if (const l3::Loss* loss = spec_.FindLoss(aim.owner)) {
      turn.name = loss->name;
      if (aim.kind == l3::Ref::Kind::kTerm) turn.name += "_" + aim.member;
      for (const l3::Term& term : loss->terms) {
        if (aim.kind == l3::Ref::Kind::kTerm && term.name != aim.member) continue;
        ObjectiveTerm resolved;
        resolved.term = &term;
        resolved.weight = sign * term.weight;
        if (ResolveTerm(term, resolved)) {
          turn.terms.push_back(std::move(resolved));
        } else {
          ok = false;
        }
      }
    } else {
      turn.name = aim.owner;
      ObjectiveTerm value;
      value.weight = sign;
      value.predicted = aim;
      turn.terms.push_back(std::move(value));
    }
    std::set<std::string> reads;
    AddModels(spec_, aim, reads);
    for (const l3::Model& model : spec_.models) {
      if (!reads.contains(model.name)) continue;
      turn.reads.push_back(model.name);
      const bool named =
          std::find(goal.models.begin(), goal.models.end(), model.name) != goal.models.end();
      if (goal.models.empty() || named) turn.updates.push_back(model.name);
    }
    return ok;
  }

  bool ResolveTerm(const l3::Term& term, ObjectiveTerm& resolved) {
    switch (term.kind) {
      case l3::LossKind::kDivergence:
        return ResolveComparison(term.reads[0], term.reads[1], resolved);
      case l3::LossKind::kReconstruction:
        return ResolveComparison(term.reads[1], term.reads[0], resolved);
      case l3::LossKind::kContrastive:
        resolved.has_loss = true;
        resolved.target_kind = TargetKind::kContrast;
        resolved.predicted = term.reads[0];
        resolved.target = term.reads[1];
        resolved.negative = term.reads[2];
        return true;
      case l3::LossKind::kNorm:
        resolved.predicted = term.reads[0];
        // Beyond, f32 powers of ordinary values leave the range of f32.
        if (term.p >= 1 && term.p <= 8) return true;
        diagnostics_
            .Error(Kind::kConsistency, term.kind_span, "a norm with this p cannot be trained yet")
            .Label("supported: p from 1 to 8");
        return false;
      case l3::LossKind::kConstraint:
      case l3::LossKind::kCustom:
        if (!term.value) {
          diagnostics_
              .Error(Kind::kConsistency, term.kind_span,
                     "custom loss '" + term.custom_name + "' says nowhere what it computes")
              .Fix(term.custom_file ? "lower the L3 file, which reads \"" + term.custom_name + "\""
                                    : "add 'value: EXPRESSION', or name a file in quotes");
          return false;
        }
        return CheckExpression(spec_, term, diagnostics_);
    }
    return false;
  }

  bool ResolveComparison(const l3::Ref& predicted, const l3::Ref& target, ObjectiveTerm& resolved) {
    const Domain& out = *spec_.DomainOf(predicted);
    const Domain& domain = *spec_.DomainOf(target);
    const auto kind = KindOfTarget(out, domain);
    if (!kind) {
      diagnostics_
          .Error(Kind::kConsistency, target.span,
                 l3::PrintRef(target) + " is " + l3::PrintDomain(domain) + " and " +
                     l3::PrintRef(predicted) + " is " + l3::PrintDomain(out) +
                     ": no loss compares them")
          .Label("expected a class index, or as many elements as the output");
      return false;
    }
    resolved.has_loss = true;
    resolved.target_kind = *kind;
    resolved.predicted = predicted;
    resolved.target = target;
    return true;
  }

  // A term's loss goes by the term's name; by the loss's and the term's where two terms share one.
  void NameChoices(std::vector<Turn>& turns) const {
    std::map<std::string, std::set<const l3::Term*>> by_name;
    auto each = [&](auto visit) {
      for (Turn& turn : turns) {
        for (ObjectiveTerm& term : turn.terms) {
          if (term.has_loss) visit(term);
        }
      }
    };
    each([&](ObjectiveTerm& term) { by_name[term.term->name].insert(term.term); });
    each([&](ObjectiveTerm& term) {
      term.choice = term.term->name;
      if (by_name[term.choice].size() == 1) return;
      for (const l3::Loss& loss : spec_.losses) {
        if (loss.FindTerm(term.choice) == term.term) {
          term.choice = loss.name + "_" + term.choice;
          return;
        }
      }
    });
  }

  const l3::Module& spec_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<std::vector<Turn>> ResolveTurns(const l3::Module& spec, Diagnostics& diagnostics) {
  return Resolver(spec, diagnostics).Run();
}

std::optional<Objective> ResolveObjective(const l3::Module& spec, const std::string& model,
                                          Diagnostics& diagnostics) {
  auto turns = ResolveTurns(spec, diagnostics);
  if (!turns) return std::nullopt;
  Objective objective;
  objective.model = spec.FindModel(model);
  objective.turns = std::move(*turns);
  std::set<const l3::Term*> seen;
  for (const Turn& turn : objective.turns) {
    for (const ObjectiveTerm& term : turn.terms) {
      if (!term.has_loss || term.predicted.owner != model || !seen.insert(term.term).second) {
        continue;
      }
      objective.terms.push_back(term);
    }
  }
  return objective;
}

std::vector<LossChoice> DefaultLosses(const Objective& objective) {
  std::vector<LossChoice> losses;
  for (const ObjectiveTerm& term : objective.terms) {
    if (term.has_loss) losses.push_back({term.choice, DefaultLoss(term.target_kind)});
  }
  return losses;
}

}  // namespace l3c::l2
