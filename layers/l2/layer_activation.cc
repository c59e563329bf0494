// Elementwise activations. Each is a derived op of the tensor algebra, which has the formula.
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

LayerEntry Activation(std::string name, std::string op, std::string doc) {
  LayerEntry entry;
  entry.form = {std::move(name), {}, std::move(doc)};
  entry.is_activation = true;
  entry.shape = [](const Form&, std::span<const Shape> operands, std::string*) {
    return std::optional<Shape>(operands[0]);
  };
  entry.expand = [op = std::move(op)](tensor::Graph& graph, const Form&,
                                      std::span<const tensor::NodeId> operands,
                                      std::span<const tensor::NodeId>) {
    return graph.Unary(*tensor::FindOp(op), operands[0]);
  };
  entry.reach = [](const Form&, std::span<const Shape>) { return Reach::kItself; };
  return entry;
}

// −1, 0 or 1. Its slope is zero, or that of a surrogate: the value is kept, x − x adds nothing but
// a slope.
LayerEntry Sign() {
  LayerEntry sign =
      Activation("sign", "sign", "−1, 0 or 1 by the sign of x; flat almost everywhere");
  sign.expand_surrogate = [](tensor::Graph& g, const Form&,
                             std::span<const tensor::NodeId> operands, const std::string& kind) {
    tensor::NodeId slope = operands[0];
    if (kind == "clipped") {
      const tensor::NodeId low = g.Binary(tensor::Op::kMax, slope, FullLike(g, -1, slope));
      slope = Apply(g, "min", {low, FullLike(g, 1, low)});
    }
    const tensor::NodeId nothing = Sub(g, slope, Apply(g, "stop_gradient", {slope}));
    const tensor::NodeId value = Apply(g, "stop_gradient", {Apply(g, "sign", {operands[0]})});
    return Add(g, value, nothing);
  };
  return sign;
}

}  // namespace

std::vector<LayerEntry> ActivationLayers() {
  return {Activation("relu", "relu", "x where positive, else 0"),
          Activation("gelu", "gelu", "x·Φ(x) in its tanh form"),
          Activation("silu", "silu", "x·sigmoid(x)"),
          Activation("swish", "silu", "another name of silu"),
          Activation("tanh", "tanh", "hyperbolic tangent"),
          Sign(),
          Activation("sigmoid", "sigmoid", "1/(1 + e⁻ˣ)")};
}

}  // namespace l3c::l2
