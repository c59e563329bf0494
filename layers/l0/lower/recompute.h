// A step within a bound on its memory: which results of the forward pass are saved for the backward
// pass and which are computed again, by the kernels that made them, so that the bits are the same.
//
//   StepPlan ──GraphOf──► launches, values, costs          launch_graph.h
//            ──KeptTerms──► what may be done               kept_terms.h, rewrites/checkpointing.egg
//            ──RepeatSearch──► what is done                repeat_search.h
//            ──WithRepeats──► StepPlan
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/launch_graph.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/search/decision.h"

namespace l3c::l0::lower {

inline constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// What an arena may take: of one memory, or of all that the step's values lie in.
struct ArenaBound {
  ArenaBound(int64_t bytes, std::optional<uint32_t> memory = std::nullopt)
      : bytes(bytes), memory(memory) {}
  int64_t bytes;
  std::optional<uint32_t> memory;
};

// The launches of a plan. `storages`: by value of the graph. With a memory, what lies in another
// takes no bytes.
LaunchGraph GraphOf(const StepPlan& plan, const ValueTable& table, std::vector<Storage>& storages,
                    std::optional<uint32_t> memory = std::nullopt);

// The plan with launches run again, each time into slots of their own.
StepPlan WithRepeats(const StepPlan& plan, const LaunchGraph& graph,
                     const std::vector<Storage>& storages, const Repeats& repeats);

struct RecomputeFailure {
  std::string rule_error;                  // the rules are at fault; else the bound is
  std::optional<search::Timeout> timeout;  // the budget is
  int64_t needed = 0;  // bytes of the smallest arena that is found, to a hundredth
  std::string forced;  // the forced choice that does not fit or does not exist, and why
};

// `options`: those that the kernels were chosen with. Decision ids are "PREFIX/VALUE.kept@KERNEL",
// labels "save" and "recompute". The search looks at no more launches than the budget's work.
// Explains nothing when everything is saved and nobody asks.
std::optional<StepPlan> PlanWithin(ArenaBound bound, const StepPlan& plan, const ValueTable& table,
                                   const RuleSources& rules, const ChooseOptions& options,
                                   std::string_view evidence, search::Explanation& explanation,
                                   RecomputeFailure& failure);

// Whether an id is of such a decision, or of the packing of an arena (arena.h): what is decided
// when the kernels are known.
bool IsMemoryDecision(std::string_view id);

}  // namespace l3c::l0::lower
