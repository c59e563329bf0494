#include "tools/l3c/other_placements.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace l3c::tools {
namespace {

constexpr std::array<std::string_view, 8> kSayWhatLiesWhere = {
    "l1/node.forward_backward", "l1/partition", "l1/cut",     "l1/micro_batches",
    "l1/node.model_state",      "l1/state",     "l1/staging", "l1/pipeline_depth"};

}  // namespace

std::vector<OtherPlacement> OtherPlacements(const search::Explanation& placing) {
  std::vector<std::pair<double, OtherPlacement>> found;
  for (const search::Decision& decision : placing.decisions) {
    const bool counts = std::find(kSayWhatLiesWhere.begin(), kSayWhatLiesWhere.end(),
                                  decision.id) != kSayWhatLiesWhere.end();
    if (!counts || decision.forced) continue;
    for (const search::Loser& loser : decision.losers) {
      found.push_back({loser.cost.front().value, {decision.id, loser.label}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<OtherPlacement> others;
  for (auto& [cost, other] : found) others.push_back(std::move(other));
  return others;
}

void TellWhatDidNotFit(const search::Explanation& first, const OtherPlacement& taken,
                       const std::string& why, search::Explanation& placing) {
  const search::Decision* before = first.Find(taken.decision);
  for (search::Decision& decision : placing.decisions) {
    if (decision.id != taken.decision || before == nullptr) continue;
    decision.forced = false;
    std::erase_if(decision.losers,
                  [&](const search::Loser& loser) { return loser.label == before->chosen; });
    decision.pruned.push_back({before->chosen, "cheaper, but has no plan: " + why, 1});
  }
}

}  // namespace l3c::tools
