// What `symmetric` (infer_symmetric.cc) is made of. Neither can be written.
//
//   acted             the sample after an action of a group: mirrored along `axis`, then turned by
//   so
//                     many quarters (axes 0 and 1)
//   mean_of_actions   the mean of what a network gives after each action
#include <string>
#include <utility>

#include "layers/l2/algebra.h"
#include "layers/l2/layers.h"
#include "layers/l2/symmetry.h"
#include "layers/support/units.h"

namespace l3c::l2 {
namespace {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

NodeId Reversed(Graph& g, NodeId x, std::vector<int64_t> axes) {
  tensor::Attributes flip;
  flip.ints = std::move(axes);
  return g.Add(Op::kFlip, {x}, std::move(flip));
}

LayerEntry Acted() {
  LayerEntry entry;
  entry.form = {"acted",
                {Arg::Integer("turns", 0, 3), Arg::Flag("mirrored", false),
                 Arg::Integer("axis", 0, 7), Arg::Flag("square", false)},
                "a sample mirrored, then turned by quarters"};
  entry.hidden = true;
  entry.shape = [](const Form& form, std::span<const Shape> operands,
                   std::string* error) -> std::optional<Shape> {
    const Shape& x = operands[0];
    const size_t rank = x.size();
    if (form.Bool(3) && (rank < 2 || rank > 3 || x[0] != x[1])) {
      *error = "quarter turns take a square image [n, n] or [n, n, channels], not " +
               tensor::ShapeToString(x);
      return std::nullopt;
    }
    if (form.Integer(2) >= static_cast<int64_t>(rank)) {
      *error = "there is no axis " + support::PrintInteger(form.Integer(2)) +
               " to reverse in a sample of shape " + tensor::ShapeToString(x);
      return std::nullopt;
    }
    return x;
  };
  entry.expand = [](Graph& g, const Form& form, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    NodeId x = operands[0];
    if (form.Bool(1)) x = Reversed(g, x, {form.Integer(2) + 1});
    const int64_t turns = form.Integer(0);
    if (turns == 2) return Reversed(g, x, {1, 2});
    if (turns == 0) return x;
    // Transposed and mirrored: to the left or to the right.
    tensor::Attributes swap;
    for (size_t d = 0; d < g.node(x).shape.size(); ++d)
      swap.ints.push_back(static_cast<int64_t>(d));
    std::swap(swap.ints[1], swap.ints[2]);
    return Reversed(g, g.Add(Op::kPermute, {x}, std::move(swap)), {turns == 1 ? 1 : 2});
  };
  return entry;
}

LayerEntry MeanOfActions() {
  LayerEntry entry;
  entry.form = {"mean_of_actions",
                {Arg::Word("group", {"reflection", "c4", "d4"}), Arg::Integer("axis", 0, 7)},
                "the mean over the actions of a group"};
  entry.hidden = true;
  entry.operand_count = LayerEntry::kAnyNumber;
  entry.shape = [](const Form&, std::span<const Shape> operands, std::string*) {
    return std::optional<Shape>(operands[0]);
  };
  entry.expand = [](Graph& g, const Form&, std::span<const NodeId> operands,
                    std::span<const NodeId>) {
    NodeId sum = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) sum = Add(g, sum, operands[i]);
    return TimesConstant(g, sum, 1 / static_cast<double>(operands.size()));
  };
  return entry;
}

}  // namespace

std::vector<LayerEntry> SymmetricLayers() { return {Acted(), MeanOfActions()}; }

}  // namespace l3c::l2
