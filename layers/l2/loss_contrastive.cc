// Losses of three embeddings: an anchor a, a positive p that belongs to it, a negative n that does
// not.
//
//   triplet(margin: m)        max(‖a − p‖² − ‖a − n‖² + m, 0)
//                             (Schroff, Kalenichenko, Philbin: FaceNet. CVPR 2015, eq. 3)
//   info_nce(temperature: t)  −log(e^{s(a,p)/t} / (e^{s(a,p)/t} + e^{s(a,n)/t})), s the cosine
//                             (van den Oord, Li, Vinyals 2018, with one negative)
#include "layers/l2/losses.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId Call(Graph& g, std::string_view name, std::vector<NodeId> operands) {
  return g.Add(*tensor::FindOp(name), std::move(operands));
}

// `x` as f32 in the shape of the anchor.
NodeId LikeAnchor(Graph& g, NodeId anchor, NodeId x) {
  const Shape shape = g.node(anchor).shape;
  if (g.node(x).dtype != DType::kF32) x = g.Cast(x, DType::kF32);
  return g.node(x).shape == shape ? x : g.Reshape(x, shape);
}

// Σ over one row of a·b.
NodeId Dot(Graph& g, NodeId a, NodeId b) {
  const NodeId product = g.Binary(Op::kMul, a, b);
  std::vector<int64_t> axes;
  for (size_t i = 1; i < g.node(product).shape.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
  }
  return axes.empty() ? product : g.ReduceSum(product, axes);
}

NodeId SquaredDistance(Graph& g, NodeId a, NodeId b) {
  const NodeId gap = Call(g, "sub", {a, b});
  return Dot(g, gap, gap);
}

LossRows ExpandTriplet(Graph& g, const Form& form, const LossOperands& in) {
  const NodeId near = SquaredDistance(g, in.output, LikeAnchor(g, in.output, in.target));
  const NodeId far = SquaredDistance(g, in.output, LikeAnchor(g, in.output, *in.negative));
  const NodeId gap = Call(g, "sub", {near, far});
  const NodeId margin = g.Full(form.Real(0), Shape(g.node(gap).shape));
  return {Call(g, "relu", {g.Binary(Op::kAdd, gap, margin)}), {}};
}

// 1/‖a‖; of an all but vanishing a, a large constant, so that neither value nor slope is infinite.
NodeId InverseNorm(Graph& g, NodeId a) {
  const NodeId square = Dot(g, a, a);
  const NodeId floor = g.Full(1e-12, Shape(g.node(square).shape));
  return Call(g, "rsqrt", {g.Binary(Op::kMax, square, floor)});
}

// log(1 + e^{(s(a,n) − s(a,p))/t})
LossRows ExpandInfoNce(Graph& g, const Form& form, const LossOperands& in) {
  const NodeId positive = LikeAnchor(g, in.output, in.target);
  const NodeId negative = LikeAnchor(g, in.output, *in.negative);
  const NodeId inverse = InverseNorm(g, in.output);
  auto cosine = [&](NodeId other) {
    const NodeId scale = g.Binary(Op::kMul, inverse, InverseNorm(g, other));
    return g.Binary(Op::kMul, Dot(g, in.output, other), scale);
  };
  const NodeId gap = Call(g, "sub", {cosine(negative), cosine(positive)});
  const NodeId inverse_temperature = g.Full(1 / form.Real(0), Shape(g.node(gap).shape));
  return {Call(g, "softplus", {g.Binary(Op::kMul, gap, inverse_temperature)}), {}};
}

}  // namespace

std::vector<LossEntry> ContrastiveLosses() {
  auto is_contrast = [](TargetKind t) { return t == TargetKind::kContrast; };
  return {
      {{"triplet",
        {Arg::Real("margin", 0, 1e6).Or(1.0)},
        "the positive is to be nearer to the anchor than the negative, by a margin"},
       is_contrast,
       ExpandTriplet},
      {{"info_nce",
        {Arg::Real("temperature", 1e-3, 1e3).Or(0.1)},
        "cross-entropy of telling the positive from the negative by their cosines"},
       is_contrast,
       ExpandInfoNce},
  };
}

}  // namespace l3c::l2
