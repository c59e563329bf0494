// norm(layer): (x − mean)/√(variance + ε)·gain + offset over the last axis, the variance that of
// the population (Ba, Kiros, Hinton 2016). norm(rms): x/√(mean x² + ε)·gain (Zhang, Sennrich 2019).
#include <string>

#include "layers/l2/layers.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr double kEpsilon = 1e-5;

bool IsRms(const Form& form) { return form.Word(0) == "rms"; }

std::optional<Shape> NormShape(const Form&, std::span<const Shape> operands, std::string* error) {
  if (operands[0].empty()) {
    *error = "norm needs an axis to take the mean over; the sample is a scalar";
    return std::nullopt;
  }
  return operands[0];
}

std::vector<Parameter> NormParameters(const Form& form, std::span<const Shape> operands) {
  const Shape features = {operands[0].back()};
  std::vector<Parameter> parameters = {{"gain", features, Init::kOnes, 0}};
  if (!IsRms(form)) parameters.push_back({"offset", features, Init::kZeros, 0});
  return parameters;
}

// Mean over the last axis, spread out over it again.
NodeId SpreadMean(Graph& graph, NodeId x) {
  const Shape shape = graph.node(x).shape;
  Shape reduced = shape;
  reduced.back() = 1;
  tensor::Attributes last;
  last.ints = {static_cast<int64_t>(shape.size()) - 1};
  const NodeId mean = graph.Add(*tensor::FindOp("reduce_mean"), {x}, last);
  return graph.Expand(graph.Reshape(mean, reduced), shape);
}

NodeId NormExpand(Graph& graph, const Form& form, std::span<const NodeId> operands,
                  std::span<const NodeId> parameters) {
  const NodeId x = operands[0];
  const Shape shape = graph.node(x).shape;
  const NodeId centred =
      IsRms(form) ? x : graph.Binary(*tensor::FindOp("sub"), x, SpreadMean(graph, x));
  const NodeId squares = graph.Unary(*tensor::FindOp("square"), centred);
  const NodeId variance = SpreadMean(graph, squares);
  const NodeId shifted =
      graph.Binary(Op::kAdd, variance, graph.Full(kEpsilon, shape, graph.node(x).dtype));
  const NodeId scaled =
      graph.Binary(Op::kMul, centred, graph.Unary(*tensor::FindOp("rsqrt"), shifted));
  const NodeId gained = graph.Binary(Op::kMul, scaled, graph.Expand(parameters[0], shape));
  if (IsRms(form)) return gained;
  return graph.Binary(Op::kAdd, gained, graph.Expand(parameters[1], shape));
}

}  // namespace

std::vector<LayerEntry> NormLayers() {
  LayerEntry norm;
  norm.form = {"norm",
               {Arg::Word("kind", {"layer", "rms"}).Positional()},
               "scales the last axis to unit variance (layer: and zero mean), then by a learned "
               "gain (layer: and offset)"};
  norm.shape = NormShape;
  norm.parameters = NormParameters;
  norm.expand = NormExpand;
  return {norm};
}

}  // namespace l3c::l2
