// Losses that measure how far the output is from a target of as many elements, d = out − target:
//
//   mse           mean of d²
//   mae           mean of |d|
//   huber(delta)  mean of ½d² where |d| ≤ delta, else delta·(|d| − ½delta)       (Huber 1964)
//   bce           mean of softplus(out) − target·out: cross-entropy of the two classes of which the
//                 output is the log odds and the target, in [0, 1], the probability
#include "layers/l2/algebra.h"
#include "layers/l2/losses.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

// The target in the output's shape and dtype.
NodeId Target(Graph& g, const LossOperands& in) {
  const Shape shape = g.node(in.output).shape;
  const NodeId target = As(g, in.target, g.node(in.output).dtype);
  return g.node(target).shape == shape ? target : g.Reshape(target, shape);
}

NodeId Gap(Graph& g, const LossOperands& in) { return Sub(g, in.output, Target(g, in)); }

LossRows MeanOfRow(Graph& g, NodeId elements) {
  return {TimesConstant(g, SumRows(g, elements), 1 / RowElements(g, elements)), {}};
}

LossRows ExpandMse(Graph& g, const Form&, const LossOperands& in) {
  return MeanOfRow(g, Apply(g, "square", {Gap(g, in)}));
}

LossRows ExpandMae(Graph& g, const Form&, const LossOperands& in) {
  return MeanOfRow(g, Apply(g, "abs", {Gap(g, in)}));
}

LossRows ExpandHuber(Graph& g, const Form& form, const LossOperands& in) {
  const double delta = form.Real(0);
  const NodeId d = Gap(g, in);
  const NodeId size = Apply(g, "abs", {d});
  const NodeId near = TimesConstant(g, Apply(g, "square", {d}), 0.5);
  const NodeId far = TimesConstant(g, PlusConstant(g, size, -0.5 * delta), delta);
  const NodeId is_far = Apply(g, "cmpgt", {size, FullLike(g, delta, size)});
  return MeanOfRow(g, g.Add(Op::kWhere, {is_far, far, near}));
}

LossRows ExpandBce(Graph& g, const Form&, const LossOperands& in) {
  const NodeId product = Mul(g, Target(g, in), in.output);
  return MeanOfRow(g, Sub(g, Apply(g, "softplus", {in.output}), product));
}

}  // namespace

std::vector<LossEntry> DistanceLosses() {
  auto is_tensor = [](TargetKind t) { return t == TargetKind::kTensor; };
  return {
      {{"mse", {}, "mean squared difference"}, is_tensor, ExpandMse},
      {{"mae", {}, "mean absolute difference"}, is_tensor, ExpandMae},
      {{"huber",
        {Arg::Real("delta", 0, 1e6).AboveMin().Or(1.0)},
        "squared difference when small, absolute difference when large"},
       is_tensor,
       ExpandHuber},
      {{"bce", {}, "cross-entropy of two classes whose log odds the output is"},
       is_tensor,
       ExpandBce},
  };
}

}  // namespace l3c::l2
