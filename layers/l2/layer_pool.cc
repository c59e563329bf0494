// pool(kind, kernel): the mean or the greatest of each block of `kernel` along every axis but the
// last, which holds the channels; what is left over at the end of an axis is cut off. The gradient
// of a maximum that several elements reach is shared evenly among them.
#include <algorithm>
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

std::optional<Shape> PoolShape(const Form& form, std::span<const Shape> operands,
                               std::string* error) {
  const int64_t kernel = form.Integer(1);
  Shape shape = operands[0];
  if (shape.size() < 2) {
    *error = "pool takes [t, channels] or [h, w, channels], not a sample of shape " +
             tensor::ShapeToString(shape);
    return std::nullopt;
  }
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (shape[i] < kernel) {
      *error = "an extent of " + support::PrintInteger(shape[i]) + " holds no block of " +
               support::PrintInteger(kernel);
      return std::nullopt;
    }
    shape[i] /= kernel;
  }
  return shape;
}

NodeId PoolExpand(Graph& g, const Form& form, std::span<const NodeId> operands,
                  std::span<const NodeId>) {
  const int64_t kernel = form.Integer(1);
  NodeId x = operands[0];
  const Shape shape = g.node(x).shape;
  Shape blocks = {shape[0]};
  std::vector<int64_t> axes;
  for (size_t i = 1; i + 1 < shape.size(); ++i) {
    x = SliceAxis(g, x, i, 0, shape[i] / kernel * kernel);
    blocks.push_back(shape[i] / kernel);
    axes.push_back(static_cast<int64_t>(blocks.size()));
    blocks.push_back(kernel);
  }
  blocks.push_back(shape.back());
  x = g.Reshape(x, blocks);
  if (form.Word(0) == "max") return g.ReduceMax(x, axes);
  tensor::Attributes over;
  over.ints = axes;
  return Apply(g, "reduce_mean", {x}, over);
}

}  // namespace

std::vector<LayerEntry> PoolLayers() {
  LayerEntry pool;
  pool.form = {"pool",
               {Arg::Word("kind", {"avg", "max"}).Positional(),
                Arg::Integer("kernel", 1, int64_t{1} << 20).Positional()},
               "the mean or the greatest of each block of positions"};
  pool.shape = PoolShape;
  pool.expand = PoolExpand;
  pool.reach = [](const Form& form, std::span<const Shape> operands) {
    const Shape& x = operands[0];
    const bool all = x.size() > 1 && std::all_of(x.begin(), x.end() - 1,
                                                 [&](int64_t n) { return n == form.Integer(1); });
    return all ? Reach::kWhole : Reach::kOther;
  };
  return {pool};
}

}  // namespace l3c::l2
