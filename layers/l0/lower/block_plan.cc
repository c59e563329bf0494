#include "layers/l0/lower/block_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "layers/l0/lower/repeated_blocks.h"
#include "layers/l0/lower/stamp.h"

namespace l3c::l0::lower {

std::optional<PlannedStep> PlanByBlocks(const Step& step, const KernelCostModel& costs,
                                        const RuleSources& rules, const ChooseOptions& options,
                                        std::string* alone) {
  const std::optional<RepeatedBlocks> blocks = FindRepeatedBlocks(step);
  if (!blocks) return std::nullopt;
  PlannedStep planned;
  std::optional<search::SearchFailure> failure;
  std::string rule_error;
  const std::optional<ChooseResult> chosen =
      ChooseKernels(blocks->step, costs, rules, options, planned.explanation, failure, rule_error);
  const bool forced = std::any_of(
      options.forced.begin(), options.forced.end(),
      [&](const auto& choice) { return choice.first.starts_with(options.prefix + "/"); });
  if (!chosen && forced && alone != nullptr) {
    *alone = "a choice forced of '" + step.name + "' is none of the three of its " +
             std::to_string(blocks->left_out + 3) +
             " repeated blocks that are searched for all: the whole step is searched, which takes "
             "longer and may end with other kernels; to force it in all copies, force it where "
             "'--explain' shows it";
  }
  if (!chosen) return std::nullopt;
  const StepPlan plan =
      PlanStep(blocks->step, *chosen, costs, options, planned.explanation, failure);
  if (failure) return std::nullopt;
  std::optional<StampedStep> stamped = StampBlocks(*blocks, step, *chosen, plan);
  if (!stamped) return std::nullopt;
  planned.table = std::move(stamped->table);
  planned.plan = std::move(stamped->plan);
  planned.explanation.pruned.push_back(
      {options.prefix + ": operations of " + std::to_string(blocks->left_out) + " repeated blocks",
       "they are those of the first of them but for names, and take its kernels",
       blocks->left_out_nodes});
  return planned;
}

}  // namespace l3c::l0::lower
