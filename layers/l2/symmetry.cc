#include "layers/l2/symmetry.h"

#include <algorithm>
#include <vector>

#include "layers/l2/infer.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

enum class Keeps : uint8_t {
  kNothing,    // the symmetry is lost
  kPositions,  // the result has the operand's positions, moved alike
  kTheWhole,   // the result has none, and does not change
};

// What a layer does with positions, by its form; layers that are not here keep nothing.
Keeps KeepsOf(const LayerNode& node, const Shape& x, std::string_view group) {
  const LayerEntry& entry = EntryOf(node);
  const Form& form = node.form;
  const std::string& name = form.name;
  const bool channels = x.size() >= 2;
  if (entry.is_activation || name == "dropout" || name == "add" || name == "embed") {
    return Keeps::kPositions;
  }
  if (!channels) return Keeps::kNothing;
  if (name == "linear") return form.Integer(0) == x.back() ? Keeps::kPositions : Keeps::kNothing;
  if (name == "norm" || name == "softmax") return Keeps::kPositions;
  if (name == "attn") return form.Bool(2) ? Keeps::kNothing : Keeps::kPositions;
  if (name == "conv") {
    const int64_t kernel = form.Integer(2);
    const bool keeps_extent = form.Integer(3) == 1 && 2 * form.Integer(4) == kernel - 1;
    return keeps_extent && (kernel == 1 || group == "translation") ? Keeps::kPositions
                                                                   : Keeps::kNothing;
  }
  if (name == "pool") {
    return std::all_of(x.begin(), x.end() - 1, [&](int64_t n) { return n == form.Integer(1); })
               ? Keeps::kTheWhole
               : Keeps::kNothing;
  }
  return Keeps::kNothing;
}

}  // namespace

bool IsKnownSymmetry(std::string_view group) {
  return group == "permutation" || group == "translation";
}

std::optional<uint32_t> FirstWithoutSymmetry(const InferGraph& infer, std::string_view group) {
  std::vector<bool> positioned(infer.nodes.size());
  positioned[0] = !infer.nodes[0].shape.empty();
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](uint32_t operand) { return positioned[operand]; });
    if (!reads) continue;
    switch (KeepsOf(node, infer.nodes[node.inputs[0]].shape, group)) {
      case Keeps::kNothing:
        return i;
      case Keeps::kPositions:
        positioned[i] = true;
        break;
      case Keeps::kTheWhole:
        break;
    }
  }
  return std::nullopt;
}

}  // namespace l3c::l2
