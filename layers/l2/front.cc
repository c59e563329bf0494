#include "layers/l2/front.h"

#include <set>
#include <utility>

#include "layers/l3/expression.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

std::string LabelOf(const l3::Goal& goal, const std::vector<double>& weights) {
  std::string label;
  for (size_t i = 0; i < weights.size(); ++i) {
    label += (i == 0 ? "" : " + ") + support::PrintReal(weights[i]) + " " +
             l3::PrintRef(goal.targets[i]);
  }
  return label;
}

// `count` places of which `at` gets `share`.
std::vector<double> Favouring(size_t count, size_t at, double share) {
  // Written so that 1 − 0.7 is 0.3 in print.
  const double rest = (10 - 10 * share) / (10 * static_cast<double>(count - 1));
  std::vector<double> weights(count, rest);
  weights[at] = share;
  return weights;
}

}  // namespace

std::vector<FrontPoint> Front(const l3::Module& spec) {
  std::vector<FrontPoint> front;
  if (spec.goal.kind != l3::Goal::Kind::kPareto || spec.goal.targets.size() < 2) return front;
  const size_t count = spec.goal.targets.size();
  auto add = [&](std::vector<double> weights) {
    std::string label = LabelOf(spec.goal, weights);
    front.push_back({std::move(weights), std::move(label)});
  };
  for (size_t i = 0; i + 1 < count; ++i) {
    add(Favouring(count, i, 0.9));
    add(Favouring(count, i, 0.7));
  }
  add(std::vector<double>(count, 1 / static_cast<double>(count)));
  add(Favouring(count, count - 1, 0.7));
  add(Favouring(count, count - 1, 0.9));
  return front;
}

size_t MiddleOf(const std::vector<FrontPoint>& front) { return front.size() - 3; }

l3::Module AtPoint(const l3::Module& spec, const FrontPoint& point) {
  l3::Module module = spec;
  std::set<std::string> taken;
  for (const l3::Data& data : spec.data) taken.insert(data.name);
  for (const l3::Model& model : spec.models) taken.insert(model.name);
  for (const l3::Loss& loss : spec.losses) taken.insert(loss.name);
  l3::Loss loss;
  loss.name = "front";
  while (taken.contains(loss.name)) loss.name += "_";
  loss.span = spec.goal.span;
  std::set<std::string> names;
  auto add = [&](l3::Term term, const std::string& owner, double weight) {
    if (names.contains(term.name)) term.name = owner + "_" + term.name;
    while (!names.insert(term.name).second) term.name += "_";
    term.weight *= weight;
    loss.terms.push_back(std::move(term));
  };
  for (size_t i = 0; i < spec.goal.targets.size(); ++i) {
    const l3::Ref& target = spec.goal.targets[i];
    if (const l3::Loss* of = spec.FindLoss(target.owner)) {
      for (const l3::Term& term : of->terms) {
        if (target.kind == l3::Ref::Kind::kTerm && term.name != target.member) continue;
        add(term, of->name, point.weights[i]);
      }
      continue;
    }
    // A value: its mean over the rows.
    l3::Term term;
    term.name = target.owner;
    term.kind = l3::LossKind::kCustom;
    term.custom_name = target.owner;
    term.reads = {target};
    l3::Expr value;
    value.kind = l3::Expr::Kind::kReference;
    value.name = l3::PrintRef(target);
    value.span = target.span;
    term.value = std::move(value);
    term.span = term.kind_span = term.weight_span = target.span;
    add(std::move(term), target.owner, point.weights[i]);
  }
  l3::Ref aim;
  aim.kind = l3::Ref::Kind::kLoss;
  aim.owner = loss.name;
  aim.span = spec.goal.span;
  module.goal = {};
  module.goal.targets = {aim};
  module.goal.span = spec.goal.span;
  module.losses.push_back(std::move(loss));
  return module;
}

}  // namespace l3c::l2
