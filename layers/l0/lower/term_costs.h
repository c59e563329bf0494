// The cost of each term of rewrites/kernel_terms.egg: seconds on the whole machine, with the
// launches, bytes and flops behind them as further components.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "egraph/extract/cost.h"
#include "layers/l0/lower/candidates.h"
#include "layers/l0/lower/choose.h"

namespace l3c::l0::lower {

using DefinitionAt = std::function<std::pair<ValueId, uint32_t>(int64_t number)>;

class TermCosts : public egraph::CostModel {
 public:
  enum Component : size_t { kTime, kLaunches, kBytes, kFlops, kKept };

  // `excluded`: definitions that nothing may be computed by.
  TermCosts(const egraph::EGraph& graph, const ValueTable& table, const CandidateSet& candidates,
            const std::vector<DotForm>& forms, const KernelCostModel& costs,
            DefinitionAt definition_at, std::set<int64_t> excluded = {});

  // `seconds_per_byte`: what a byte counts for that a value is kept in.
  static egraph::Objective Time(double seconds_per_byte) {
    egraph::Objective objective = egraph::Objective::Single(kTime);
    objective.weight[kKept] = seconds_per_byte;
    return objective;
  }

  const egraph::CostSchema& schema() const override { return schema_; }
  egraph::CostVector NodeCost(const egraph::EGraphView& view, egraph::ENodeRef node) const override;

 private:
  // How much of a context's work runs side by side.
  struct Width {
    double lanes = 1;
    double blocks = 1;
  };
  Width WidthOf(const Candidate& kernel, uint32_t context) const;
  // Nothing where no entry says how often the value is loaded.
  std::optional<AccessWork> LoadWork(int64_t v, int64_t c) const;
  egraph::CostVector Load(int64_t v, int64_t c) const;
  // From a row that is near; what brings it there is paid for once (Fetch).
  egraph::CostVector LoadRow(int64_t v, int64_t c) const;
  egraph::CostVector Fetch(int64_t v, int64_t k) const;
  egraph::CostVector AddUp(int64_t d, int64_t c) const;
  egraph::CostVector Compute(int64_t d, int64_t c, bool row) const;
  egraph::CostVector Scatter(int64_t d, int64_t c) const;
  // Of overwriting `group` in kernel k: what it costs that another group than the kernel's own
  // makes sums of whole columns there (side_updates.h).
  egraph::CostVector HandedOutByColumns(int64_t group, int64_t k) const;
  egraph::CostVector Stored(int64_t v, int64_t k) const;

  std::vector<egraph::FunctionId> functions_;
  const ValueTable& table_;
  const CandidateSet& candidates_;
  const std::vector<DotForm>& forms_;
  const KernelCostModel& costs_;
  DefinitionAt definition_at_;
  std::set<int64_t> excluded_;
  std::vector<std::pair<uint32_t, uint32_t>> owner_;  // by global context: (kernel, context)
  egraph::CostSchema schema_;
};

}  // namespace l3c::l0::lower
