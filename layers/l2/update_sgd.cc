// sgd(lr, momentum: 0)    v ← momentum·v + g;  p ← p − lr·v          (no v when momentum is 0)
#include "layers/l2/algebra.h"
#include "layers/l2/update_leaf.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

void Expand(const Form& form, UpdateStep& step) {
  Graph& g = *step.graph;
  const NodeId rate = LearningRate(step, form.Real(0));
  const double momentum = form.Real(1);
  for (size_t p = 0; p < step.parameters.size(); ++p) {
    NodeId direction = step.gradients[p];
    if (momentum != 0) {
      direction = Add(g, TimesScalar(g, step.state[0][p], momentum), direction);
      step.state[0][p] = direction;
    }
    const NodeId move = Scaled(g, direction, ForParameter(step, p, rate));
    step.updated.push_back(Sub(g, step.parameters[p], move));
  }
}

}  // namespace

UpdateEntry SgdUpdate() {
  UpdateEntry sgd;
  sgd.form = {"sgd",
              {Arg::Real("lr", 0, 1e6), Arg::Real("momentum", 0, 1).BelowMax().Or(0.0)},
              "steps against the gradient, or against a decaying sum of gradients"};
  sgd.state = [](const Form& form) {
    return form.Real(1) != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  };
  sgd.expand = Expand;
  return sgd;
}

}  // namespace l3c::l2
