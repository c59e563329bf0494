// embed(vocab, dim): row x of a table [vocab, dim] for every integer x of the sample; an x outside
// the table gives zeros. position(kind, n): adds to each of n positions of [n, dim] a vector of its
// own: learned, or (Vaswani et al. 2017) sin(p/10000^(2i/dim)) at 2i and the cosine at 2i + 1.
#include <cmath>
#include <string>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/support/units.h"
#include "layers/tensor/op.h"

namespace l3c::l2 {
namespace {

using tensor::DType;
using tensor::Graph;
using tensor::NodeId;

constexpr int64_t kMaxVocabulary = int64_t{1} << 24;

LayerEntry Embed() {
  LayerEntry embed;
  embed.form = {"embed",
                {Arg::Integer("vocab", 1, kMaxVocabulary).Positional(),
                 Arg::Integer("dim", 1, int64_t{1} << 20).Positional()},
                "a learned vector for each integer; drawn normal with variance 1/dim"};
  embed.begins_line = true;
  embed.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string*) -> std::optional<Shape> {
    Shape shape = operands[0];
    // One integer a sample is a sequence of one without its axis.
    if (shape == Shape{1}) shape.clear();
    shape.push_back(form.Integer(1));
    return shape;
  };
  embed.parameters = [](const Form& form, std::span<const Shape>) -> std::vector<Parameter> {
    const double deviation = 1 / std::sqrt(static_cast<double>(form.Integer(1)));
    return {{"weight", {form.Integer(0), form.Integer(1)}, Init::kNormal, 0, deviation}};
  };
  embed.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId> parameters) {
    Shape shape = g.node(operands[0]).shape;
    const int64_t count = tensor::NumElements(shape);
    if (shape.size() == 2 && shape[1] == 1) shape.pop_back();
    shape.push_back(form.Integer(1));
    const NodeId index = As(g, g.Reshape(operands[0], {count}), DType::kI32);
    const NodeId rows = g.Add(tensor::Op::kGather, {parameters[0], index});
    return g.Reshape(rows, shape);
  };
  embed.reach = [](const Form&, std::span<const Shape> operands) {
    return operands[0].empty() ? Reach::kOther : Reach::kItself;
  };
  return embed;
}

// [n, dim] of sines and cosines.
NodeId Sinusoid(Graph& g, int64_t n, int64_t dim, DType dtype) {
  const NodeId place = Iota(g, {n, dim}, 0, dtype);
  const NodeId axis = Iota(g, {n, dim}, 1, dtype);
  const NodeId odd = Apply(
      g, "sub", {axis, TimesConstant(g, Apply(g, "floor", {TimesConstant(g, axis, 0.5)}), 2)});
  const NodeId even = Sub(g, axis, odd);
  const double rate = -std::log2(10000.0) / static_cast<double>(dim);
  const NodeId frequency = g.Unary(tensor::Op::kExp2, TimesConstant(g, even, rate));
  const NodeId angle = Mul(g, place, frequency);
  const NodeId is_odd = g.Binary(tensor::Op::kCmpNe, odd, FullLike(g, 0, odd));
  return g.Add(tensor::Op::kWhere,
               {is_odd, Apply(g, "cos", {angle}), g.Unary(tensor::Op::kSin, angle)});
}

LayerEntry Position() {
  LayerEntry position;
  position.form = {"position",
                   {Arg::Word("kind", {"learned", "sinusoid"}).Positional(),
                    Arg::Integer("n", 1, kMaxVocabulary).Positional()},
                   "adds a vector of its own to each of at most n positions"};
  position.shape = [](const Form& form, std::span<const Shape> operands,
                      std::string* error) -> std::optional<Shape> {
    if (operands[0].size() == 2 && operands[0][0] <= form.Integer(1)) return operands[0];
    *error = "position(…, " + support::PrintInteger(form.Integer(1)) +
             ") takes a sequence [t, dim] of at most " + support::PrintInteger(form.Integer(1)) +
             " positions, not a sample of shape " + tensor::ShapeToString(operands[0]);
    return std::nullopt;
  };
  position.parameters = [](const Form& form,
                           std::span<const Shape> operands) -> std::vector<Parameter> {
    if (form.Word(0) != "learned") return {};
    return {{"table", {form.Integer(1), operands[0][1]}, Init::kNormal, 0, 0.02}};
  };
  position.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                       std::span<const NodeId> parameters) {
    const Shape shape = g.node(operands[0]).shape;
    const NodeId table = parameters.empty()
                             ? Sinusoid(g, shape[1], shape[2], g.node(operands[0]).dtype)
                             : SliceAxis(g, parameters[0], 0, 0, shape[1]);
    (void)form;
    return Add(g, operands[0], g.Expand(table, shape));
  };
  position.reach = [](const Form&, std::span<const Shape>) { return Reach::kPlace; };
  return position;
}

}  // namespace

std::vector<LayerEntry> EmbedLayers() { return {Embed(), Position()}; }

}  // namespace l3c::l2
