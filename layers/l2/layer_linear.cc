// linear(in, out): y = x·W + b over the last axis, W [in, out], b [out]. A sample whose elements
// number `in` but whose last axis does not is flattened first.
#include "layers/l2/layers.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

constexpr int64_t kMaxWidth = int64_t{1} << 24;

bool ContractsLastAxis(int64_t in, const Shape& x) { return !x.empty() && x.back() == in; }

std::optional<Shape> LinearShape(const Form& form, std::span<const Shape> operands,
                                 std::string* error) {
  const Shape& x = operands[0];
  const int64_t in = form.Integer(0);
  if (ContractsLastAxis(in, x)) {
    Shape y = x;
    y.back() = form.Integer(1);
    return y;
  }
  const int64_t elements = tensor::NumElements(x);
  if (elements == in) return Shape{form.Integer(1)};
  *error = "linear(" + support::PrintInteger(in) + ", …) cannot take a sample of shape " +
           tensor::ShapeToString(x);
  if (!x.empty() && x.back() != elements) {
    *error += ": its last axis has " + support::PrintInteger(x.back()) +
              " elements, all together " + support::PrintInteger(elements);
  }
  return std::nullopt;
}

std::vector<Parameter> LinearParameters(const Form& form, std::span<const Shape>) {
  const int64_t in = form.Integer(0);
  const int64_t out = form.Integer(1);
  return {{"weight", {in, out}, Init::kKaimingNormal, in}, {"bias", {out}, Init::kZeros, 0}};
}

NodeId LinearExpand(Graph& graph, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId> parameters) {
  const int64_t in = form.Integer(0);
  const int64_t out = form.Integer(1);
  const Shape x = graph.node(operands[0]).shape;
  const Shape sample(x.begin() + 1, x.end());
  Shape result = x;
  int64_t rows = x[0];
  if (ContractsLastAxis(in, sample)) {
    for (size_t i = 0; i + 1 < sample.size(); ++i) rows *= sample[i];
    result.back() = out;
  } else {
    result = {rows, out};
  }
  NodeId flat = operands[0];
  if (x != Shape{rows, in}) flat = graph.Reshape(flat, {rows, in});
  const NodeId product = graph.Matmul(flat, parameters[0]);
  const NodeId bias = graph.Expand(parameters[1], {rows, out});
  const NodeId y = graph.Binary(tensor::Op::kAdd, product, bias);
  return result == Shape{rows, out} ? y : graph.Reshape(y, result);
}

}  // namespace

std::vector<LayerEntry> LinearLayers() {
  LayerEntry linear;
  linear.form = {"linear",
                 {Arg::Integer("in", 1, kMaxWidth).Positional(),
                  Arg::Integer("out", 1, kMaxWidth).Positional()},
                 "x·W + b over the last axis; W is drawn normal with variance 2/in, b is zero"};
  linear.begins_line = true;
  linear.is_stage = true;
  linear.shape = LinearShape;
  linear.parameters = LinearParameters;
  linear.expand = LinearExpand;
  linear.reach = [](const Form& form, std::span<const Shape> operands) {
    const bool each = operands[0].size() > 1 && ContractsLastAxis(form.Integer(0), operands[0]);
    return each ? Reach::kItself : Reach::kOther;
  };
  return {linear};
}

}  // namespace l3c::l2
