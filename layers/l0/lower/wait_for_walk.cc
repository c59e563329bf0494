#include "layers/l0/lower/wait_for_walk.h"

#include <set>
#include <string>

#include "layers/l0/lower/selection.h"

namespace l3c::l0::lower {

using egraph::ENodeRef;

std::vector<ChoiceSearch::Choice> WaitForWalk(const CandidateSet& candidates,
                                              const egraph::EGraphView& view) {
  std::set<ValueId> waiting;
  for (const Candidate& kernel : candidates.kernels) {
    if (kernel.kind == KernelKind::kLast) waiting.insert(kernel.roots[0]);
  }
  std::vector<ChoiceSearch::Choice> chosen;
  if (waiting.empty()) return chosen;
  // The walks that make what those start from.
  std::set<int64_t> contexts;
  std::vector<ChoiceSearch::Choice> stores;
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    const ENodeRef node{n};
    const std::string& name = view.function(node).name;
    if (name != "Store" && name != "Beside") continue;
    const Candidate& kernel = candidates.kernels[static_cast<size_t>(IntegerOf(view, node, 1))];
    const bool start = kernel.kind == KernelKind::kSums &&
                       kernel.late.contains(static_cast<ValueId>(IntegerOf(view, node, 0)));
    if (start) contexts.insert(kernel.first_context);
    if (start || kernel.kind == KernelKind::kLast) {
      stores.emplace_back(view.NodeClass(node), node);
    }
  }
  for (uint32_t n = 0; n < view.node_count(); ++n) {
    const ENodeRef node{n};
    if (view.function(node).name != "Fold") continue;
    if (!contexts.contains(IntegerOf(view, node, 1))) continue;
    chosen.emplace_back(view.NodeClass(node), node);
  }
  chosen.insert(chosen.end(), stores.begin(), stores.end());
  return chosen;
}

}  // namespace l3c::l0::lower
