// conv(in_ch, out_ch, kernel, stride, padding): y[p, o] = Σ over offsets d of the kernel and
// channels c of x[p·stride − padding + d, c]·W[d…, c, o] + b[o], zero outside of x. Channels are
// the last axis. Two spatial axes [h, w, channels] take a square kernel, one [t, channels] a line;
// a sample [h, w] is an image of one channel. Correlation, as in every framework: W is not flipped.
//
// The expansion adds one matmul for each offset of the kernel; where there are few channels, whose
// matmuls would be slivers, the patches are laid side by side and there is one.
#include <algorithm>
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;

constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kMaxKernel = 64;
constexpr int64_t kFewChannels = 4;

struct Geometry {
  int64_t in, out, kernel, stride, padding;
  explicit Geometry(const Form& form)
      : in(form.Integer(0)),
        out(form.Integer(1)),
        kernel(form.Integer(2)),
        stride(form.Integer(3)),
        padding(form.Integer(4)) {}
  int64_t Extent(int64_t extent) const { return (extent + 2 * padding - kernel) / stride + 1; }
};

// The sample as [spatial…, channels]; nothing when it is no such thing.
std::optional<Shape> WithChannels(const Geometry& conv, const Shape& sample) {
  const bool channels_last = !sample.empty() && sample.back() == conv.in;
  if ((sample.size() == 3 || sample.size() == 2) && channels_last) return sample;
  if (sample.size() == 2 && conv.in == 1) return Shape{sample[0], sample[1], 1};
  return std::nullopt;
}

std::optional<Shape> ConvShape(const Form& form, std::span<const Shape> operands,
                               std::string* error) {
  const Geometry conv(form);
  auto sample = WithChannels(conv, operands[0]);
  if (!sample) {
    *error = "conv(" + support::PrintInteger(conv.in) + ", …) cannot take a sample of shape " +
             tensor::ShapeToString(operands[0]) + ": it takes [h, w, " +
             support::PrintInteger(conv.in) + "] or [t, " + support::PrintInteger(conv.in) + "]";
    return std::nullopt;
  }
  for (size_t i = 0; i + 1 < sample->size(); ++i) {
    if ((*sample)[i] + 2 * conv.padding < conv.kernel) {
      *error = "a kernel of " + support::PrintInteger(conv.kernel) +
               " is wider than an extent of " + support::PrintInteger((*sample)[i]) + " with " +
               support::PrintInteger(conv.padding) + " of padding on each side";
      return std::nullopt;
    }
    (*sample)[i] = conv.Extent((*sample)[i]);
  }
  sample->back() = conv.out;
  return sample;
}

std::vector<Parameter> ConvParameters(const Form& form, std::span<const Shape> operands) {
  const Geometry conv(form);
  const size_t axes = WithChannels(conv, operands[0])->size() - 1;
  Shape weight(axes, conv.kernel);
  weight.insert(weight.end(), {conv.in, conv.out});
  const int64_t fan_in = tensor::NumElements(weight) / conv.out;
  return {{"weight", weight, Init::kKaimingNormal, fan_in}, {"bias", {conv.out}, Init::kZeros, 0}};
}

NodeId ConvExpand(Graph& g, const Form& form, std::span<const NodeId> operands,
                  std::span<const NodeId> parameters) {
  const Geometry conv(form);
  const Shape given = g.node(operands[0]).shape;
  Shape shape = *WithChannels(conv, Shape(given.begin() + 1, given.end()));
  shape.insert(shape.begin(), given[0]);
  NodeId x = given == shape ? operands[0] : g.Reshape(operands[0], shape);
  const size_t axes = shape.size() - 2;
  if (conv.padding > 0) {
    tensor::Attributes around;
    around.ints.assign(2 * shape.size(), 0);
    for (size_t i = 1; i <= axes; ++i) around.ints[2 * i] = around.ints[2 * i + 1] = conv.padding;
    x = g.Add(tensor::Op::kPad, {x}, std::move(around));
  }
  Shape result = shape;
  for (size_t i = 1; i <= axes; ++i) result[i] = conv.Extent(shape[i]);
  result.back() = conv.out;
  const int64_t positions = tensor::NumElements(result) / conv.out;

  // What each offset of the kernel sees, [positions, in].
  const int64_t offsets = axes == 2 ? conv.kernel * conv.kernel : conv.kernel;
  std::vector<NodeId> seen;
  for (int64_t o = 0; o < offsets; ++o) {
    const int64_t at[2] = {axes == 2 ? o / conv.kernel : o, o % conv.kernel};
    NodeId part = x;
    for (size_t i = 1; i <= axes; ++i) {
      const int64_t start = at[i - 1];
      part = SliceAxis(g, part, i, start, start + (result[i] - 1) * conv.stride + 1, conv.stride);
    }
    seen.push_back(g.Reshape(part, {positions, conv.in}));
  }
  NodeId sum = 0;
  if (conv.in < kFewChannels) {
    const NodeId weight = g.Reshape(parameters[0], {offsets * conv.in, conv.out});
    sum = g.Matmul(Concatenate(g, seen, 1), weight);
  } else {
    const NodeId weight = g.Reshape(parameters[0], {offsets, conv.in, conv.out});
    for (int64_t o = 0; o < offsets; ++o) {
      const NodeId at = g.Reshape(SliceAxis(g, weight, 0, o, o + 1), {conv.in, conv.out});
      const NodeId product = g.Matmul(seen[static_cast<size_t>(o)], at);
      sum = o == 0 ? product : Add(g, sum, product);
    }
  }
  const NodeId y = Add(g, sum, g.Expand(parameters[1], {positions, conv.out}));
  return g.Reshape(y, result);
}

}  // namespace

std::vector<LayerEntry> ConvLayers() {
  LayerEntry conv;
  conv.form = {
      "conv",
      {Arg::Integer("in_ch", 1, kMaxChannels).Positional(),
       Arg::Integer("out_ch", 1, kMaxChannels).Positional(), Arg::Integer("kernel", 1, kMaxKernel),
       Arg::Integer("stride", 1, kMaxKernel).Or(int64_t{1}),
       Arg::Integer("padding", 0, kMaxKernel).Or(int64_t{0})},
      "a weighted sum of each neighbourhood; W is drawn normal with variance 2/fan-in, b "
      "is zero"};
  conv.begins_line = true;
  conv.is_stage = true;
  conv.shape = ConvShape;
  conv.parameters = ConvParameters;
  conv.expand = ConvExpand;
  conv.reach = [](const Form& form, std::span<const Shape>) {
    const int64_t kernel = form.Integer(2);
    const bool keeps_extent = form.Integer(3) == 1 && 2 * form.Integer(4) == kernel - 1;
    if (!keeps_extent) return Reach::kOther;
    return kernel == 1 ? Reach::kItself : Reach::kNear;
  };
  return {conv};
}

}  // namespace l3c::l2
