#include "layers/l2/symmetry.h"

#include <algorithm>
#include <vector>

#include "layers/l2/infer.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
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
    switch (ReachOf(infer, node)) {
      case Reach::kItself:
      case Reach::kAll:
        positioned[i] = true;
        break;
      case Reach::kNear:
        if (group != "translation") return i;
        positioned[i] = true;
        break;
      case Reach::kWhole:
        break;
      case Reach::kPlace:
      case Reach::kUpTo:
      case Reach::kOther:
        return i;
    }
  }
  return std::nullopt;
}

}  // namespace l3c::l2
