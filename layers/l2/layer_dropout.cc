// dropout(p): in training, each element is zero with probability p and divided by 1 − p otherwise
// (Srivastava et al. 2014); in evaluation, nothing. The mask is drawn from the step and the layer's
// name alone, so that a recomputed mask is the same mask.
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {

using tensor::Graph;
using tensor::NodeId;

std::vector<LayerEntry> DropoutLayers() {
  LayerEntry dropout;
  dropout.form = {"dropout",
                  {Arg::Real("p", 0, 1).BelowMax().Positional()},
                  "in training, zero with probability p, else divided by 1 − p"};
  dropout.shape = [](const Form&, std::span<const Shape> operands, std::string*) {
    return std::optional<Shape>(operands[0]);
  };
  dropout.expand = [](Graph&, const Form&, std::span<const NodeId> operands,
                      std::span<const NodeId>) { return operands[0]; };
  dropout.expand_random = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                             std::span<const NodeId>, NodeId key) {
    const double p = form.Real(0);
    if (p == 0) return operands[0];
    const NodeId x = operands[0];
    const NodeId draw = Uniform(g, key, Shape(g.node(x).shape));
    const NodeId dropped = g.Binary(tensor::Op::kCmpLt, draw, FullLike(g, p, draw));
    const NodeId kept = TimesConstant(g, x, 1 / (1 - p));
    return g.Add(tensor::Op::kWhere, {dropped, FullLike(g, 0, x), kept});
  };
  dropout.reach = [](const Form&, std::span<const Shape>) { return Reach::kItself; };
  return {dropout};
}

}  // namespace l3c::l2
