#include "layers/l2/symmetry.h"

#include <algorithm>
#include <string>

#include "layers/l2/form.h"
#include "layers/l2/infer.h"
#include "layers/l2/layers.h"

namespace l3c::l2 {
namespace {

// Whether a mean over the actions of one group is one over those of the other, or of more.
bool Covers(const Form& mean, std::string_view group, int64_t axis) {
  const std::string& own = mean.Word(0);
  if (group == "reflection")
    return own == "d4" ? axis == 1 : own == group && mean.Integer(1) == axis;
  return own == group || own == "d4";
}

}  // namespace

bool IsGroupOfActions(std::string_view group) {
  return group == "reflection" || group == "c4" || group == "d4";
}

std::vector<Form> ActionsOf(std::string_view group, int64_t axis) {
  const bool turns = group != "reflection";
  const bool mirrors = group != "c4";
  std::vector<Form> actions;
  for (int64_t mirrored = 0; mirrored <= (mirrors ? 1 : 0); ++mirrored) {
    for (int64_t t = 0; t <= (turns ? 3 : 0); ++t) {
      actions.push_back(MakeForm(FindLayer("acted")->form, {{"turns", t},
                                                            {"mirrored", mirrored == 1},
                                                            {"axis", turns ? int64_t{1} : axis},
                                                            {"square", turns}}));
    }
  }
  return actions;
}

int64_t ReflectionAxis(const l3::Domain& domain) {
  return domain.kind == l3::Domain::Kind::kTensor && domain.shape.size() >= 2 ? 1 : 0;
}

std::optional<uint32_t> FirstWithoutSymmetry(const InferGraph& infer, std::string_view group,
                                             int64_t axis) {
  // What a node does when what it reads is acted on.
  enum : uint8_t {
    kStays,  // nothing
    kMoves,  // its result is acted on likewise
    kActed,  // inside of a mean over actions, which sees to it
  };
  std::vector<uint8_t> does(infer.nodes.size(), kStays);
  if (!infer.nodes[0].shape.empty()) does[0] = kMoves;
  for (uint32_t i = 1; i < infer.nodes.size(); ++i) {
    const LayerNode& node = infer.nodes[i];
    uint8_t reads = kStays;
    for (uint32_t operand : node.inputs) reads = std::max(reads, does[operand]);
    if (node.form.name == "mean_of_actions") {
      if (reads == kStays) continue;
      if (reads != kActed || !Covers(node.form, group, axis)) return i;
      continue;
    }
    if (reads == kActed) {
      does[i] = kActed;
      continue;
    }
    if (reads == kStays) continue;
    if (node.form.name == "acted") {
      // A group of actions: to be met by the mean. Else a reordering like any other.
      does[i] = IsGroupOfActions(group) ? kActed : kMoves;
      continue;
    }
    switch (ReachOf(infer, node)) {
      case Reach::kItself:
      case Reach::kAll:
        does[i] = kMoves;
        break;
      case Reach::kNear:
        if (group != "translation") return i;
        does[i] = kMoves;
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
