// adam(lr, beta1, beta2, eps)   m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²
//                               p ← p − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + eps),  t = 1, 2, …
//                               (Kingma and Ba 2015, algorithm 1)
// t counts the steps that m and v have seen, which are fewer than all where a phase moves something
// else, or otherwise.
#include <map>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/update_leaf.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

void Expand(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const double beta1 = form.Real(1);
  const double beta2 = form.Real(2);
  const double epsilon = form.Real(3);
  // lr/(1−β₁ᵗ) and 1/√(1−β₂ᵗ), once for all state that has seen as many steps.
  std::map<NodeId, std::pair<NodeId, NodeId>> scales;
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    const NodeId history = step.history[p];
    if (!scales.contains(history)) {
      const NodeId first =
          Apply(g, "div", {LearningRate(step, form.Real(0)), BiasCorrection(g, history, beta1)});
      const NodeId second =
          g.Unary(Op::kRecip, g.Unary(Op::kSqrt, BiasCorrection(g, history, beta2)));
      scales[history] = {first, second};
    }
    const auto [rate, spread] = scales[history];
    const NodeId grad = step.gradients[p];
    const NodeId m = RunningMean(g, step.state[0][p], grad, beta1);
    const NodeId v = RunningMean(g, step.state[1][p], Apply(g, "square", {grad}), beta2);
    step.state[0][p] = m;
    step.state[1][p] = v;
    const NodeId root = Scaled(g, g.Unary(Op::kSqrt, v), ForParameter(step, p, spread));
    const NodeId denominator = PlusConstant(g, root, epsilon);
    const NodeId move = Apply(g, "div", {Scaled(g, m, ForParameter(step, p, rate)), denominator});
    step.updated.push_back(Sub(g, step.parameters[p], move));
  }
}

}  // namespace

UpdateEntry AdamUpdate() {
  UpdateEntry adam;
  adam.form = {"adam",
               {Arg::Real("lr", 0, 1e6), Arg::Real("beta1", 0, 1).BelowMax().Or(0.9),
                Arg::Real("beta2", 0, 1).BelowMax().Or(0.999), Arg::Real("eps", 0, 1).Or(1e-8)},
               "steps by the mean gradient over the root of its mean square"};
  adam.state = [](const Form&) { return std::vector<std::string>{"m", "v"}; };
  adam.counts_history = true;
  adam.expand = Expand;
  return adam;
}

}  // namespace l3c::l2
