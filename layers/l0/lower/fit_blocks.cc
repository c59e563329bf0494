#include "layers/l0/lower/fit_blocks.h"

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/l0/lower/selection.h"
#include "layers/l0/lower/shifted_values.h"

namespace l3c::l0::lower {

using egraph::ClassRef;
using egraph::ENodeRef;
using egraph::FunctionId;

namespace {

class BlockFitter {
 public:
  BlockFitter(const egraph::EGraphView& view, const ValueTable& table,
              const CandidateSet& candidates)
      : view_(view), table_(table), candidates_(candidates) {}

  void Run(ShiftedValues& shifted, ChoiceSearch& search) const {
    constexpr int kMostRounds = 8;
    for (int round = 0; round < kMostRounds && search.feasible() && !search.spent(); ++round) {
      const std::set<ValueId> missing = MissingInMiddle(search.Best(), shifted);
      if (missing.empty()) return;
      for (const ValueId v : missing) {
        if (search.spent()) return;
        StoreInMiddle(v, search);
      }
    }
  }

 private:
  int32_t BlockOf(uint32_t kernel) const {
    return table_.values[candidates_.kernels[kernel].roots.front()].block;
  }

  std::set<ValueId> MissingInMiddle(const egraph::Extraction& best, ShiftedValues& shifted) const {
    const egraph::SortId memory = view_.graph().FindSort("Mem");
    std::set<ValueId> stored;
    std::set<ValueId> wanted;
    const CandidateSet& set = candidates_;
    std::vector<uint32_t> owner;  // by context
    for (uint32_t k = 0; k < set.kernels.size(); ++k) {
      owner.insert(owner.end(), set.kernels[k].contexts.size(), k);
    }
    for (const ClassRef c : best.order) {
      const ENodeRef n = best.Chosen(c);
      const std::string& name = view_.function(n).name;
      if (name == "Store" || name == "Beside") {
        if (BlockOf(static_cast<uint32_t>(IntegerOf(view_, n, 1))) == 1) {
          stored.insert(static_cast<ValueId>(IntegerOf(view_, n, 0)));
        }
        continue;
      }
      if (name != "Load" && name != "LoadRow" && name != "Dot" && name != "Row") continue;
      if (BlockOf(owner[static_cast<size_t>(IntegerOf(view_, n, 1))]) != 1) continue;
      for (const ClassRef child : view_.NodeChildren(n)) {
        if (view_.ClassSort(child) != memory) continue;
        const Storage from = StoredAt(view_, best, child);
        if (from.kernel < 0) continue;
        const int32_t block = BlockOf(static_cast<uint32_t>(from.kernel));
        if (block != 0 && block != 2) continue;
        const std::optional<ValueId> own = shifted.Shift(from.value, block == 0 ? 1 : -1);
        if (own) wanted.insert(*own);
      }
    }
    for (const ValueId v : stored) wanted.erase(v);
    return wanted;
  }

  // By the kernel of the middle block with which the step is cheapest.
  void StoreInMiddle(ValueId v, ChoiceSearch& search) const {
    const FunctionId store = view_.graph().FindFunction("Store");
    const FunctionId beside = view_.graph().FindFunction("Beside");
    std::optional<ChoiceSearch::Choice> best;
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t n = 0; n < view_.node_count(); ++n) {
      const ENodeRef node{n};
      const FunctionId f = view_.NodeFunction(node);
      if ((f != store && f != beside) || IntegerOf(view_, node, 0) != v) continue;
      if (BlockOf(static_cast<uint32_t>(IntegerOf(view_, node, 1))) != 1) continue;
      const ChoiceSearch::Choice choice = {view_.NodeClass(node), node};
      const auto with = search.With({choice});
      if (!with || !(with->dag_cost < least)) continue;
      least = with->dag_cost;
      best = choice;
    }
    if (best) search.Require({*best});
  }

  const egraph::EGraphView& view_;
  const ValueTable& table_;
  const CandidateSet& candidates_;
};

}  // namespace

void FitBlocks(const egraph::EGraphView& view, const Step& step, const ValueTable& table,
               const CandidateSet& candidates, ChoiceSearch& search) {
  if (step.blocks.of_node.empty()) return;
  ShiftedValues shifted(step, table);
  BlockFitter(view, table, candidates).Run(shifted, search);
}

}  // namespace l3c::l0::lower
