// positions(n): a sample of n·c elements laid out as n positions of c, [n, c]. What makes a
// sequence of a network that has lost its positions, or never had any.
#include "layers/l2/layers.h"
#include "layers/support/units.h"

namespace l3c::l2 {

std::vector<LayerEntry> PositionsLayers() {
  LayerEntry positions;
  positions.form = {"positions",
                    {Arg::Integer("n", 1, int64_t{1} << 24).Positional()},
                    "lays the elements of a sample out as n positions"};
  positions.shape = [](const Form& form, std::span<const Shape> operands,
                       std::string* error) -> std::optional<Shape> {
    const int64_t n = form.Integer(0);
    const int64_t elements = tensor::NumElements(operands[0]);
    if (elements % n == 0 && elements > 0) return Shape{n, elements / n};
    *error = support::PrintInteger(elements) + " elements cannot be laid out as " +
             support::PrintInteger(n) + " positions of the same size";
    return std::nullopt;
  };
  positions.expand = [](tensor::Graph& graph, const Form& form,
                        std::span<const tensor::NodeId> operands, std::span<const tensor::NodeId>) {
    const Shape shape = graph.node(operands[0]).shape;
    const int64_t n = form.Integer(0);
    return graph.Reshape(operands[0], {shape[0], n, tensor::NumElements(shape) / shape[0] / n});
  };
  return {positions};
}

}  // namespace l3c::l2
