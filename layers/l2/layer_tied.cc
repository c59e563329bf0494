// tied(layer): x·Wᵀ with the weight W [out, in] of another layer, which is learned there (a
// language model's last layer reads the table of its first: Press, Wolf 2017). shared(layer): the
// other layer once more, with its parameters; the network's graph holds a second node of that
// layer, so this entry is only the way to write it.
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

std::optional<Shape> TiedShape(const Form& form, std::span<const Shape> operands,
                               std::span<const Parameter> borrowed, std::string* error) {
  const Shape& weight = borrowed[0].shape;
  Shape shape = operands[0];
  if (weight.size() != 2) {
    *error = "the weight of '" + form.Word(0) + "' has shape " + tensor::ShapeToString(weight) +
             ": only a matrix can be tied";
    return std::nullopt;
  }
  if (shape.empty() || shape.back() != weight[1]) {
    *error = "tied(" + form.Word(0) + ") takes a last axis of " + support::PrintInteger(weight[1]) +
             ", not a sample of shape " + tensor::ShapeToString(shape);
    return std::nullopt;
  }
  shape.back() = weight[0];
  return shape;
}

NodeId TiedExpand(Graph& g, const Form&, std::span<const NodeId> operands,
                  std::span<const NodeId> parameters) {
  const Shape shape = g.node(operands[0]).shape;
  const Shape weight = g.node(parameters[0]).shape;
  const int64_t rows = tensor::NumElements(shape) / shape.back();
  const NodeId product =
      g.Matmul(g.Reshape(operands[0], {rows, weight[1]}), g.Transpose(parameters[0]));
  Shape result = shape;
  result.back() = weight[0];
  return g.Reshape(product, result);
}

}  // namespace

std::vector<LayerEntry> TiedLayers() {
  LayerEntry tied;
  tied.form = {"tied", {Arg::Name("layer").Positional()}, "x·Wᵀ with the weight of another layer"};
  tied.begins_line = true;
  tied.is_stage = true;
  tied.borrowed_shape = TiedShape;
  tied.expand = TiedExpand;
  tied.reach = [](const Form&, std::span<const Shape> operands) {
    return operands[0].size() > 1 ? Reach::kItself : Reach::kOther;
  };
  LayerEntry shared;
  shared.form = {std::string(kShared),
                 {Arg::Name("layer").Positional()},
                 "another layer once more, with the same parameters"};
  return {tied, shared};
}

}  // namespace l3c::l2
