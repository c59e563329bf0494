// Elementwise activations. Each is a derived op of the tensor algebra, which has the formula.
#include <string>

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
  entry.keeps_positions = [](const Form&, std::span<const Shape>) { return true; };
  return entry;
}

}  // namespace

std::vector<LayerEntry> ActivationLayers() {
  return {Activation("relu", "relu", "x where positive, else 0"),
          Activation("gelu", "gelu", "x·Φ(x) in its tanh form"),
          Activation("silu", "silu", "x·sigmoid(x)"),
          Activation("swish", "silu", "another name of silu"),
          Activation("tanh", "tanh", "hyperbolic tangent"),
          Activation("sigmoid", "sigmoid", "1/(1 + e⁻ˣ)")};
}

}  // namespace l3c::l2
