// The join of a residual block: x + block(x).
#include <string>

#include "layers/l2/layers.h"

namespace l3c::l2 {

std::vector<LayerEntry> JoinLayers() {
  LayerEntry add;
  add.form = {"add", {}, "sum of a block and the input it skips"};
  add.hidden = true;
  add.operand_count = 2;
  add.shape = [](const Form&, std::span<const Shape> operands,
                 std::string* error) -> std::optional<Shape> {
    if (operands[0] == operands[1]) return operands[0];
    *error = "the block of a residual turns shape " + tensor::ShapeToString(operands[0]) +
             " into " + tensor::ShapeToString(operands[1]) + "; they must be the same to be added";
    return std::nullopt;
  };
  add.expand = [](tensor::Graph& graph, const Form&, std::span<const tensor::NodeId> operands,
                  std::span<const tensor::NodeId>) {
    return graph.Binary(tensor::Op::kAdd, operands[0], operands[1]);
  };
  add.keeps_positions = [](const Form&, std::span<const Shape>) { return true; };
  return {add};
}

}  // namespace l3c::l2
