// lion(lr, beta1, beta2)   p ← p − lr·sign(β₁m + (1−β₁)g);  m ← β₂m + (1−β₂)g
//                          (Chen et al. 2023, algorithm 2, without weight decay)
#include "layers/l2/algebra.h"
#include "layers/l2/update_leaf.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

void Expand(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const NodeId rate = LearningRate(step, form.Real(0));
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    const NodeId grad = step.gradients[p];
    const NodeId direction = RunningMean(g, step.state[0][p], grad, form.Real(1));
    step.state[0][p] = RunningMean(g, step.state[0][p], grad, form.Real(2));
    const NodeId move = Scaled(g, Apply(g, "sign", {direction}), ForParameter(step, p, rate));
    step.updated.push_back(Sub(g, step.parameters[p], move));
  }
}

}  // namespace

UpdateEntry LionUpdate() {
  UpdateEntry lion;
  lion.form = {"lion",
               {Arg::Real("lr", 0, 1e6), Arg::Real("beta1", 0, 1).BelowMax().Or(0.9),
                Arg::Real("beta2", 0, 1).BelowMax().Or(0.99)},
               "steps by the sign of a running mean of the gradient"};
  lion.state = [](const Form&) { return std::vector<std::string>{"m"}; };
  lion.expand = Expand;
  return lion;
}

}  // namespace l3c::l2
