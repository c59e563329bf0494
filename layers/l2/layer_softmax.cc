// softmax: eˣ/Σeˣ over the last axis, with the greatest element subtracted first (algebra.h).
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {

std::vector<LayerEntry> SoftmaxLayers() {
  LayerEntry softmax;
  softmax.form = {"softmax", {}, "a distribution over the last axis: eˣ/Σeˣ"};
  softmax.shape = [](const Form&, std::span<const Shape> operands,
                     std::string* error) -> std::optional<Shape> {
    if (operands[0].empty()) {
      *error = "softmax needs an axis; the sample is a scalar";
      return std::nullopt;
    }
    return operands[0];
  };
  softmax.expand = [](tensor::Graph& graph, const Form&, std::span<const tensor::NodeId> operands,
                      std::span<const tensor::NodeId>) { return Softmax(graph, operands[0]); };
  softmax.expand_log =
      [](tensor::Graph& graph, const Form&, std::span<const tensor::NodeId> operands,
         std::span<const tensor::NodeId>) { return LogSoftmax(graph, operands[0]); };
  softmax.reach = [](const Form&, std::span<const Shape> operands) {
    return operands[0].size() > 1 ? Reach::kItself : Reach::kOther;
  };
  return {softmax};
}

}  // namespace l3c::l2
