// recurrent(cell, steps: n | until(pred)): the cell again and again, with one set of weights.
//
//   of a sequence [steps, features]   sₜ₊₁ = cell(xₜ ‖ sₜ), s₀ = 0: the cell takes the features and
//                                     the state side by side and gives the next state
//   of anything else                  sₜ₊₁ = cell(sₜ), s₀ = x: the cell keeps the shape
//
// The result is the last state. `until(pred)` keeps a row's state from the first step on at which
// the predicate holds of it; what it may read is `step` (0 before the first), and `state` and
// `change` (the last state, and how far it moved) inside a reduction. The number of steps is the
// bound that the predicate itself proves, `step >= n` or an alternative of it; without one the
// recurrence is unbounded and refused.
#include <algorithm>
#include <cmath>

#include "layers/l2/infer_methods.h"
#include "layers/l2/layers.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

constexpr int64_t kMaxSteps = 512;

// The least number of steps after which the predicate holds whatever the state; nothing when that
// cannot be proven.
std::optional<int64_t> ProvenBound(const l3::Expr& pred) {
  if (pred.kind != l3::Expr::Kind::kBinary) return std::nullopt;
  if (pred.name == "||" || pred.name == "&&") {
    const auto a = ProvenBound(pred.args[0]);
    const auto b = ProvenBound(pred.args[1]);
    if (pred.name == "||") return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
    return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
  }
  auto is_step = [](const l3::Expr& e) {
    return e.kind == l3::Expr::Kind::kReference && e.name == "step";
  };
  auto is_number = [](const l3::Expr& e) { return e.kind == l3::Expr::Kind::kNumber; };
  const bool forward = is_step(pred.args[0]) && is_number(pred.args[1]);
  const bool backward = is_number(pred.args[0]) && is_step(pred.args[1]);
  if (!forward && !backward) return std::nullopt;
  const double n = pred.args[forward ? 1 : 0].number;
  if (!(n >= 0 && n <= 1e9)) return std::nullopt;
  const bool reached = pred.name == (forward ? ">=" : "<=");
  const bool passed = pred.name == (forward ? ">" : "<");
  if (!reached && !passed) return std::nullopt;
  return static_cast<int64_t>(reached ? std::ceil(n) : std::floor(n) + 1);
}

bool CheckReferences(const l3::Expr& pred, support::Diagnostics& diagnostics) {
  bool ok = true;
  l3::ForEachReference(pred, [&](const l3::Expr& ref) {
    if (ref.name == "step" || ref.name == "state" || ref.name == "change") return;
    diagnostics.Error(support::Kind::kSafety, ref.span, "until cannot read '" + ref.name + "'")
        .Label("it may read step, state and change");
    ok = false;
  });
  return ok;
}

// The width that the last learning layer of the cell gives: that of the state.
std::optional<int64_t> StateWidth(const InferForm& cell) {
  for (size_t i = cell.items.size(); i-- > 0;) {
    if (const auto width = StateWidth(cell.items[i])) return width;
  }
  if (cell.kind != InferForm::Kind::kLayer) return std::nullopt;
  const Form& form = cell.written[0];
  const LayerEntry* entry = FindLayer(form.name);
  for (size_t i = 0; i < entry->form.args.size(); ++i) {
    if (entry->form.args[i].name == "out") return form.Integer(i);
  }
  return std::nullopt;
}

std::optional<uint32_t> Lower(InferLowering& to, InferForm& call, uint32_t input) {
  const Form form = call.written[0];
  int64_t steps = form.Integer(0);
  const bool bounded = form.HasExpression(1);
  if ((steps > 0) == bounded) {
    to.diagnostics().Error(support::Kind::kConsistency, form.span,
                           "recurrent needs one of 'steps: n' and 'until(predicate)'");
    return std::nullopt;
  }
  if (bounded) {
    const l3::Expr& pred = form.Expression(1);
    if (!l3::VerifyExpr(pred, to.diagnostics()) || !CheckReferences(pred, to.diagnostics())) {
      return std::nullopt;
    }
    const auto bound = l3::IsPredicate(pred) ? ProvenBound(pred) : std::nullopt;
    if (!bound || *bound < 1 || *bound > kMaxSteps) {
      to.diagnostics()
          .Error(support::Kind::kResourceBound, pred.span,
                 bound ? "until ends after " + support::PrintInteger(*bound) + " steps"
                       : "nothing proves that this ends")
          .Label(bound ? "from 1 to " + support::PrintInteger(kMaxSteps)
                       : "expected a predicate with a bound on 'step'")
          .Fix("write 'until(" + l3::PrintExpr(pred) + " || step >= 16)'");
      return std::nullopt;
    }
    steps = *bound;
  }
  const int64_t width = StateWidth(call.items[0]).value_or(0);
  InferBuilder& builder = to.builder();
  const std::vector<std::pair<std::string, Value>> shape = {{"steps", steps}, {"width", width}};
  uint32_t state = to.Join("state0", shape, {input}, form.span);
  uint32_t before = state;
  auto next_input = [&](int64_t t) {
    return to.Join("step_input", {{"steps", steps}, {"t", t}}, {input, state}, form.span);
  };
  auto keep = [&](int64_t t, uint32_t next) {
    if (bounded) {
      next = to.Join("keep_until", {{"until", form.args[1]}, {"t", t}}, {before, state, next},
                     form.span);
    }
    before = state;
    state = next;
  };
  const uint32_t first_input = next_input(0);
  const uint32_t first = static_cast<uint32_t>(builder.size());
  const auto output = to.Lower(call.items[0], first_input);
  if (!output) return std::nullopt;
  const uint32_t end = static_cast<uint32_t>(builder.size());
  if (static_cast<int64_t>(end - first) * steps > 4096) {
    to.diagnostics()
        .Error(support::Kind::kResourceBound, form.span,
               "unrolled, this takes " +
                   support::PrintInteger(static_cast<int64_t>(end - first) * steps) + " layers")
        .Label("at most 4096");
    return std::nullopt;
  }
  keep(0, *output);
  for (int64_t t = 1; t < steps; ++t) {
    const uint32_t at = next_input(t);
    keep(t, to.Repeat(first, end, *output, first_input, at));
  }
  return state;
}

}  // namespace

InferEntry RecurrentMethod() {
  InferEntry recurrent;
  recurrent.form = {
      "recurrent",
      {Arg::Integer("steps", 1, kMaxSteps).Or(int64_t{0}), Arg::Predicate("until")},
      "a network applied again and again, to each element of a sequence or to its own "
      "result"};
  recurrent.parts = {{"cell", false}};
  recurrent.lower = Lower;
  return recurrent;
}

}  // namespace l3c::l2
