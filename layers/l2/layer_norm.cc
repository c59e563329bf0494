// norm(layer): (x − mean)/√(variance + ε)·gain + offset over the last axis, the variance that of
// the population (Ba, Kiros, Hinton 2016). norm(rms): x/√(mean x² + ε)·gain (Zhang, Sennrich 2019).
// norm(group(n)): as layer, but mean and variance are taken over all axes of each of n groups of
// channels, which are the last axis (Wu, He 2018). ε = 1e-5.
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

constexpr double kEpsilon = 1e-5;

bool IsRms(const Form& form) { return form.Inner(0).name == "rms"; }
bool IsGroup(const Form& form) { return form.Inner(0).name == "group"; }

std::optional<Shape> NormShape(const Form& form, std::span<const Shape> operands,
                               std::string* error) {
  const Shape& x = operands[0];
  if (x.empty()) {
    *error = "norm needs an axis to take the mean over; the sample is a scalar";
    return std::nullopt;
  }
  if (IsGroup(form) && x.back() % form.Inner(0).Integer(0) != 0) {
    *error = "the last axis has " + support::PrintInteger(x.back()) +
             " channels, which cannot be split into " +
             support::PrintInteger(form.Inner(0).Integer(0)) + " groups of the same size";
    return std::nullopt;
  }
  return x;
}

std::vector<Parameter> NormParameters(const Form& form, std::span<const Shape> operands) {
  const Shape features = {operands[0].back()};
  std::vector<Parameter> parameters = {{"gain", features, Init::kOnes, 0}};
  if (!IsRms(form)) parameters.push_back({"offset", features, Init::kZeros, 0});
  return parameters;
}

// Mean over the axes, spread out over them again.
NodeId SpreadMean(Graph& graph, NodeId x, const std::vector<int64_t>& axes) {
  const Shape shape = graph.node(x).shape;
  Shape reduced = shape;
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = 1;
  tensor::Attributes over;
  over.ints = axes;
  const NodeId mean = Apply(graph, "reduce_mean", {x}, over);
  return graph.Expand(graph.Reshape(mean, reduced), shape);
}

// (x − mean)/√(variance + ε), or x/√(mean x² + ε).
NodeId Normalised(Graph& graph, NodeId x, const std::vector<int64_t>& axes, bool centre) {
  const NodeId centred = centre ? Sub(graph, x, SpreadMean(graph, x, axes)) : x;
  const NodeId squares = Apply(graph, "square", {centred});
  const NodeId shifted = PlusConstant(graph, SpreadMean(graph, squares, axes), kEpsilon);
  return Mul(graph, centred, Apply(graph, "rsqrt", {shifted}));
}

NodeId NormExpand(Graph& graph, const Form& form, std::span<const NodeId> operands,
                  std::span<const NodeId> parameters) {
  const NodeId x = operands[0];
  const Shape shape = graph.node(x).shape;
  NodeId scaled = 0;
  if (IsGroup(form)) {
    // [batch, …, channels] → [batch, positions, groups, channels of a group]
    const int64_t groups = form.Inner(0).Integer(0);
    const int64_t positions = tensor::NumElements(shape) / (shape[0] * shape.back());
    const NodeId split = graph.Reshape(x, {shape[0], positions, groups, shape.back() / groups});
    scaled = graph.Reshape(Normalised(graph, split, {1, 3}, true), shape);
  } else {
    scaled =
        Normalised(graph, x, {static_cast<int64_t>(shape.size()) - 1}, /*centre=*/!IsRms(form));
  }
  const NodeId gained = Mul(graph, scaled, graph.Expand(parameters[0], shape));
  if (IsRms(form)) return gained;
  return Add(graph, gained, graph.Expand(parameters[1], shape));
}

}  // namespace

const std::vector<Entry>& NormKinds() {
  static const std::vector<Entry> kinds = {
      {"layer", {}, "zero mean and unit variance of the last axis"},
      {"rms", {}, "unit mean square of the last axis"},
      {"group",
       {Arg::Integer("n", 1, int64_t{1} << 24).Positional()},
       "zero mean and unit variance of each of n groups of channels"},
  };
  return kinds;
}

std::vector<LayerEntry> NormLayers() {
  LayerEntry norm;
  norm.form = {"norm",
               {Arg::Nested("kind", Family::kNorm).Positional()},
               "scales the last axis to unit variance (layer: and zero mean), then by a learned "
               "gain (layer: and offset)"};
  norm.shape = NormShape;
  norm.parameters = NormParameters;
  norm.expand = NormExpand;
  norm.reach = [](const Form& form, std::span<const Shape> operands) {
    if (operands[0].size() < 2) return Reach::kOther;
    return IsGroup(form) ? Reach::kAll : Reach::kItself;
  };
  return {norm};
}

}  // namespace l3c::l2
