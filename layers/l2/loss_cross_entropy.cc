// ce   −(1−s)·log p[label] − s/n·Σ log p          target: class index, or a distribution t:
//      −Σ t̃ log p, t̃ = (1−s)t + s/n. log p is the log-softmax of the logits where the network ends
//      in a softmax, so that no probability underflows. Rows whose label is ignore_index count
//      nothing.
// kl   Σ t (log t − log p), 0 log 0 = 0           target: a distribution
// error  1 − p[label]: the probability of being wrong     target: class index
//
// Where the output is a sequence of distributions, p and the target have a position between batch
// and class; a row's loss is the mean over its positions that count.
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/losses.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId LogOutput(Graph& g, const LossOperands& in) {
  return in.log_output ? *in.log_output : Apply(g, "log", {in.output});
}

// Labels as i32, in the shape of the output without its last axis.
NodeId LabelIndex(Graph& g, const LossOperands& in) {
  Shape shape = g.node(in.output).shape;
  shape.pop_back();
  NodeId label = in.target;
  if (g.node(label).shape != shape) label = g.Reshape(label, shape);
  return As(g, label, DType::kI32);
}

// true where the class is not the label of the position; i32 labels outside the classes are true
// everywhere.
NodeId IsNotLabel(Graph& g, NodeId label, const Shape& shape) {
  const NodeId index = Iota(g, Shape(shape), static_cast<int64_t>(shape.size()) - 1, DType::kI32);
  return g.Binary(Op::kCmpNe, index, SpreadLast(g, label, shape));
}

// Positions of a row: 1 where the output is one distribution.
double Positions(const Graph& g, NodeId per_class) {
  return RowElements(g, per_class) / static_cast<double>(g.node(per_class).shape.back());
}

// [batch, …position] → mean over the positions; with `kept` (f32 of the same shape, 0 or 1), over
// those that are kept.
LossRows JoinPositions(Graph& g, NodeId loss, std::optional<NodeId> kept) {
  const double positions = RowElements(g, loss);
  if (!kept) return {TimesConstant(g, SumRows(g, loss), 1 / positions), {}};
  if (g.node(loss).shape.size() == 1) return {loss, kept};
  const NodeId zero = FullLike(g, 0, *kept);
  const NodeId counted = WhereElse(g, g.Binary(Op::kCmpNe, *kept, zero), loss, 0);
  const NodeId count = SumRows(g, *kept);
  const NodeId at_least_one = g.Binary(Op::kMax, count, FullLike(g, 1, count));
  const NodeId any =
      g.Cast(g.Binary(Op::kCmpNe, count, FullLike(g, 0, count)), g.node(count).dtype);
  return {Apply(g, "div", {SumRows(g, counted), at_least_one}), any};
}

// −Σ over classes of the target times log p; a target of zero counts nothing even where log p is
// −inf.
NodeId AgainstDistribution(Graph& g, NodeId target, NodeId log_p) {
  const NodeId is_zero = Apply(g, "not", {g.Binary(Op::kCmpNe, target, FullLike(g, 0, target))});
  const NodeId product = Mul(g, target, log_p);
  const NodeId kept = g.Add(Op::kWhere, {is_zero, FullLike(g, 0, product), product});
  return g.Unary(Op::kNeg, SumLast(g, kept));
}

NodeId TargetDistribution(Graph& g, const LossOperands& in) {
  NodeId target = As(g, in.target, g.node(in.output).dtype);
  const Shape shape = g.node(in.output).shape;
  return g.node(target).shape == shape ? target : g.Reshape(target, shape);
}

std::optional<int64_t> IgnoredByCe(const Form& form) {
  if (form.Integer(1) < 0) return std::nullopt;
  return form.Integer(1);
}

LossRows ExpandCe(Graph& g, const Form& form, const LossOperands& in) {
  const double smoothing = form.Real(0);
  const std::optional<int64_t> ignored = IgnoredByCe(form);
  const NodeId log_p = LogOutput(g, in);
  const Shape shape = g.node(log_p).shape;
  NodeId loss = 0;
  std::optional<NodeId> kept;
  if (in.target_is_label) {
    const NodeId label = LabelIndex(g, in);
    const NodeId other = IsNotLabel(g, label, shape);
    const NodeId picked = g.Add(Op::kWhere, {other, FullLike(g, 0, log_p), log_p});
    loss = g.Unary(Op::kNeg, SumLast(g, picked));
    if (ignored) {
      const NodeId differs =
          g.Binary(Op::kCmpNe, label, FullLike(g, static_cast<double>(*ignored), label));
      kept = g.Cast(differs, g.node(log_p).dtype);
    }
  } else {
    loss = AgainstDistribution(g, TargetDistribution(g, in), log_p);
  }
  if (smoothing > 0) {
    const NodeId even = g.Unary(Op::kNeg, SumLast(g, log_p));
    loss = Add(g, TimesConstant(g, loss, 1 - smoothing),
               TimesConstant(g, even, smoothing / static_cast<double>(shape.back())));
  }
  return JoinPositions(g, loss, kept);
}

LossRows ExpandKl(Graph& g, const Form&, const LossOperands& in) {
  const NodeId target = TargetDistribution(g, in);
  const NodeId log_p = LogOutput(g, in);
  const NodeId is_zero = Apply(g, "not", {g.Binary(Op::kCmpNe, target, FullLike(g, 0, target))});
  const NodeId safe = g.Add(Op::kWhere, {is_zero, FullLike(g, 1, target), target});
  const NodeId gap = Sub(g, Apply(g, "log", {safe}), log_p);
  const NodeId product = Mul(g, target, gap);
  const NodeId kept = g.Add(Op::kWhere, {is_zero, FullLike(g, 0, product), product});
  return {TimesConstant(g, SumRows(g, kept), 1 / Positions(g, log_p)), {}};
}

LossRows ExpandError(Graph& g, const Form&, const LossOperands& in) {
  const Shape shape = g.node(in.output).shape;
  const NodeId other = IsNotLabel(g, LabelIndex(g, in), shape);
  const NodeId right = SumLast(g, g.Add(Op::kWhere, {other, FullLike(g, 0, in.output), in.output}));
  return JoinPositions(g, Sub(g, FullLike(g, 1, right), right), {});
}

}  // namespace

std::vector<LossEntry> CrossEntropyLosses() {
  return {
      {{"ce",
        {Arg::Real("label_smoothing", 0, 1).Or(0.0),
         Arg::Integer("ignore_index", -1, int64_t{1} << 30).Or(int64_t{-1})},
        "cross-entropy: minus the log of the probability given to the label"},
       [](TargetKind t) { return t == TargetKind::kLabel || t == TargetKind::kDistribution; },
       ExpandCe,
       IgnoredByCe},
      {{"kl", {}, "Kullback-Leibler divergence of the output from a target distribution"},
       [](TargetKind t) { return t == TargetKind::kDistribution; },
       ExpandKl,
       nullptr},
      {{"error", {}, "the probability given to the other classes than the label"},
       [](TargetKind t) { return t == TargetKind::kLabel; },
       ExpandError,
       nullptr},
  };
}

}  // namespace l3c::l2
