// reinforce(baseline): the gradient of the expected loss when a class is drawn from the output
// instead of read off it (Williams 1992). A class is sampled for each row, the row's loss is that
// of the sampled class with certainty, and the direction is the gradient of
//   mean over rows of (loss − baseline)·log p[sampled],  the first factor a constant,
// plus what the loss of the samples says of the parameters directly, plus the terms that compare no
// output (norms, constraints, custom losses) with the gradients that they have.
// The baseline is 0 (none) or the batch's mean loss (mean). Nothing needs a slope but log p: a loss
// may be any figure of the sampled class, such as `error`, a reward of 1 for the right one.
#include <optional>
#include <string>
#include <vector>

#include "layers/l2/algebra.h"
#include "layers/l2/backward.h"
#include "layers/l2/infer.h"
#include "layers/l2/inputs.h"
#include "layers/l2/layers.h"
#include "layers/l2/losses.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

void Check(const Form& form, const Module& module, const Methods& methods,
           support::Diagnostics& diagnostics) {
  const l3::Model& model = *module.spec.FindModel(methods.model);
  if (ClassesOf(model.out) == 0) {
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "reinforce draws a class from the output, and '" + model.name + "' gives none")
        .With({model.out_span, "declared here"})
        .Fix("write autodiff(mode: reverse)");
    return;
  }
  for (const LossChoice& loss : methods.losses) {
    if (FindLoss(loss.form.name)->bears_certainty) continue;
    diagnostics
        .Error(support::Kind::kConsistency, loss.form.span.known() ? loss.form.span : form.span,
               loss.form.name +
                   " is infinite where a sampled class is wrong, so reinforce cannot "
                   "learn from it")
        .With({form.span, "the method is chosen here"})
        .Fix("write 'loss: error', the probability of a wrong class");
    return;
  }
  if (methods.losses.empty()) {
    diagnostics
        .Error(support::Kind::kConsistency, form.span,
               "no loss reads the output of '" + model.name + "' row by row")
        .Fix("write autodiff(mode: reverse)");
  }
}

// Σ over real rows / their number. Rows that pad the batch are cut out, whatever they hold.
NodeId MeanOverRows(BackwardGraph& to, NodeId rows) {
  Graph& g = to.graph();
  const NodeId real = g.Binary(Op::kCmpNe, to.mask(), FullLike(g, 0, to.mask()));
  const NodeId count = g.Binary(Op::kMax, SumAll(g, to.mask()), g.Const(1));
  return Apply(g, "div", {SumAll(g, WhereElse(g, real, rows, 0)), count});
}

// mean (loss − baseline)·log p[sampled] + mean loss[sampled], the second for what moves the loss of
// a sample itself. Nothing where no row's loss reads the output.
std::optional<NodeId> SampledLoss(BackwardGraph& to, const BackwardCall& call) {
  if (!to.row_loss()) return std::nullopt;
  Graph& g = to.graph();
  const NetworkNodes& network = to.network(call.model);
  const NodeId p = network.output;
  const Shape shape = g.node(p).shape;
  // Models that draw in one step draw apart.
  const std::string label = call.model == 0 ? "sample" : "sample " + call.methods->model;
  // The greatest of log p + Gumbel noise is a sample of p.
  const NodeId draw = Uniform(g, to.Key(label), Shape(shape));
  const NodeId tiny = FullLike(g, 5.9604644775390625e-08, draw);  // 2⁻²⁴
  const NodeId inner = Apply(g, "log", {g.Binary(Op::kMax, draw, tiny)});
  const NodeId gumbel =
      g.Unary(Op::kNeg, Apply(g, "log", {g.Binary(Op::kMax, g.Unary(Op::kNeg, inner), tiny)}));
  const NodeId score = Add(g, *network.log_output, gumbel);
  const NodeId top = SpreadLast(g, MaxLast(g, score), shape);
  const NodeId other = g.Binary(Op::kCmpNe, score, top);
  const NodeId sampled = g.Add(Op::kWhere, {other, FullLike(g, 0, p), FullLike(g, 1, p)});
  const NodeId losses = to.Substitute(*to.row_loss(), {{p, sampled}});  // [batch]
  const NodeId mean = MeanOverRows(to, losses);
  if (losses == *to.row_loss()) return mean;
  NodeId advantage = losses;
  if (call.form->Word(0) == "mean") {
    advantage = Sub(g, losses, g.Expand(mean, g.node(losses).shape));
  }
  const NodeId fixed = Apply(g, "stop_gradient", {advantage});
  const NodeId log_p =
      g.Add(Op::kWhere, {other, FullLike(g, 0, *network.log_output), *network.log_output});
  return Add(g, MeanOverRows(to, Mul(g, fixed, SumRows(g, log_p))), mean);
}

std::vector<NodeId> Direct(BackwardGraph& to, const BackwardCall& call) {
  std::optional<NodeId> surrogate = SampledLoss(to, call);
  if (to.other_loss()) {
    surrogate = surrogate ? Add(to.graph(), *surrogate, *to.other_loss()) : *to.other_loss();
  }
  std::vector<NodeId> wrt;
  for (size_t i : call.parameters) wrt.push_back(to.parameter(i));
  return to.Differentiate(*surrogate, wrt);
}

}  // namespace

BackwardEntry ReinforceBackward() {
  BackwardEntry reinforce;
  reinforce.form = {"reinforce",
                    {Arg::Word("baseline", {"none", "mean"}).Or(std::string("mean"))},
                    "the gradient of the expected loss of sampled classes"};
  reinforce.draws = true;
  reinforce.check = Check;
  reinforce.direct = Direct;
  return reinforce;
}

}  // namespace l3c::l2
