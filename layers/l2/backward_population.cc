// Directions from losses alone, at points around the parameters θ; no layer needs a slope. ε are
// normal, drawn anew in every step.
//
//   zeroth_order(samples, sigma)          mean over samples of (L(θ + σε) − L(θ − σε))/2σ · ε
//                                         (Nesterov, Spokoiny 2017: central differences)
//   evolution(pop, sigma, selection)      1/(pop·σ) Σ wᵢεᵢ over a population θ + σεᵢ, in which each
//   ε
//                                         comes with its −ε (Salimans et al. 2017). wᵢ is
//       all    (Lᵢ − mean)/deviation
//       rank   the rank of Lᵢ, from −½ (the least) to ½
//       top    −2 for the better half, 0 for the others
#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr int64_t kMaxPoints = 64;

// ε for each parameter of the call.
std::vector<NodeId> Noise(BackwardGraph& to, const BackwardCall& call, int64_t sample) {
  std::vector<NodeId> noise;
  for (size_t p : call.parameters) {
    const Parameter& parameter = to.parameters()[p];
    const NodeId key = to.Key("direction " + std::to_string(sample) + " " + parameter.name);
    noise.push_back(Normal(to.graph(), key, parameter.shape));
  }
  return noise;
}

// The loss at θ + scale·ε.
NodeId LossAt(BackwardGraph& to, const BackwardCall& call, const std::vector<NodeId>& noise,
              double scale) {
  std::map<NodeId, NodeId> moved;
  for (size_t i = 0; i < noise.size(); ++i) {
    const NodeId at = to.parameter(call.parameters[i]);
    moved[at] = Add(to.graph(), at, TimesConstant(to.graph(), noise[i], scale));
  }
  return to.Substitute(to.loss(), moved);
}

// Σ over samples of weights[sample]·noise[sample], for each parameter.
std::vector<NodeId> Weighed(BackwardGraph& to, const std::vector<NodeId>& weights,
                            const std::vector<std::vector<NodeId>>& noise) {
  Graph& g = to.graph();
  std::vector<NodeId> sums;
  for (size_t p = 0; p < noise[0].size(); ++p) {
    NodeId sum = 0;
    for (size_t s = 0; s < weights.size(); ++s) {
      const NodeId part = Scaled(g, noise[s][p], weights[s]);
      sum = s == 0 ? part : Add(g, sum, part);
    }
    sums.push_back(sum);
  }
  to.Settle({&sums});
  return sums;
}

std::vector<NodeId> ZerothOrder(BackwardGraph& to, const BackwardCall& call) {
  const int64_t samples = call.form->Integer(0);
  const double sigma = call.form->Real(1);
  std::vector<NodeId> weights;
  std::vector<std::vector<NodeId>> noise;
  for (int64_t s = 0; s < samples; ++s) {
    noise.push_back(Noise(to, call, s));
    const NodeId above = LossAt(to, call, noise.back(), sigma);
    const NodeId below = LossAt(to, call, noise.back(), -sigma);
    weights.push_back(TimesConstant(to.graph(), Sub(to.graph(), above, below),
                                    1 / (2 * sigma * static_cast<double>(samples))));
  }
  return Weighed(to, weights, noise);
}

// [pop] losses → [pop] weights.
NodeId Weights(Graph& g, NodeId losses, const std::string& selection) {
  const int64_t pop = g.node(losses).shape[0];
  const double n = static_cast<double>(pop);
  if (selection == "all") {
    const NodeId mean = g.Expand(g.Reshape(Apply(g, "reduce_mean", {losses}), {1}), {pop});
    const NodeId centred = Sub(g, losses, mean);
    const NodeId variance = Apply(g, "reduce_mean", {Apply(g, "square", {centred})});
    const NodeId deviation = g.Binary(Op::kAdd, g.Unary(Op::kSqrt, variance), g.Const(1e-8));
    return Scaled(g, centred, g.Unary(Op::kRecip, deviation));
  }
  // How many are less, and half of those that are equal.
  const NodeId own = g.Expand(g.Reshape(losses, {pop, 1}), {pop, pop});
  const NodeId other = g.Expand(g.Reshape(losses, {1, pop}), {pop, pop});
  const NodeId less = g.Cast(g.Binary(Op::kCmpLt, other, own), DType::kF32);
  const NodeId equal = TimesConstant(g, g.Cast(Apply(g, "cmpeq", {other, own}), DType::kF32), 0.5);
  const NodeId rank = PlusConstant(g, SumLast(g, Add(g, less, equal)), -0.5);
  if (selection == "rank") return PlusConstant(g, TimesConstant(g, rank, 1 / (n - 1)), -0.5);
  const NodeId better = g.Binary(Op::kCmpLt, rank, FullLike(g, n / 2 - 0.25, rank));
  return TimesConstant(g, g.Cast(better, DType::kF32), -2);
}

std::vector<NodeId> Evolution(BackwardGraph& to, const BackwardCall& call) {
  const int64_t pop = call.form->Integer(0);
  const double sigma = call.form->Real(1);
  Graph& g = to.graph();
  std::vector<std::vector<NodeId>> noise;
  std::vector<NodeId> losses;
  for (int64_t s = 0; s < pop / 2; ++s) {
    noise.push_back(Noise(to, call, s));
    losses.push_back(g.Reshape(LossAt(to, call, noise.back(), sigma), {1}));
    losses.push_back(g.Reshape(LossAt(to, call, noise.back(), -sigma), {1}));
  }
  const NodeId weights = Weights(g, Concatenate(g, losses, 0), call.form->Word(2));
  std::vector<NodeId> pairs;
  for (int64_t s = 0; s < pop / 2; ++s) {
    auto weight = [&](int64_t i) { return g.Reshape(SliceAxis(g, weights, 0, i, i + 1), {}); };
    pairs.push_back(TimesConstant(g, Sub(g, weight(2 * s), weight(2 * s + 1)),
                                  1 / (static_cast<double>(pop) * sigma)));
  }
  return Weighed(to, pairs, noise);
}

}  // namespace

BackwardEntry ZerothOrderBackward() {
  BackwardEntry entry;
  entry.form = {"zeroth_order",
                {Arg::Integer("samples", 1, kMaxPoints / 2), Arg::Real("sigma", 0, 1e3).AboveMin()},
                "differences of the loss between opposite points around the parameters"};
  entry.draws = true;
  entry.direct = ZerothOrder;
  return entry;
}

BackwardEntry EvolutionBackward() {
  BackwardEntry entry;
  entry.form = {"evolution",
                {Arg::Integer("pop", 4, kMaxPoints), Arg::Real("sigma", 0, 1e3).AboveMin().Or(0.05),
                 Arg::Word("selection", {"rank", "top", "all"}).Or(std::string("rank"))},
                "a population around the parameters, weighed by how it does"};
  entry.draws = true;
  entry.check = [](const Form& form, const Module&, const Methods&,
                   support::Diagnostics& diagnostics) {
    if (form.Integer(0) % 2 == 0) return;
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "a population comes in pairs, and " + support::PrintInteger(form.Integer(0)) +
                   " is odd")
        .Fix("write pop: " + support::PrintInteger(form.Integer(0) + 1));
  };
  entry.direct = Evolution;
  return entry;
}

}  // namespace l3c::l2
