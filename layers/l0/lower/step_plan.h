// The kernels of one step in the order in which they are launched, each with its schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/kernel_build.h"
#include "layers/l0/lower/memory_plan.h"

namespace l3c::l0::lower {

struct Launch {
  Kernel kernel;                  // scheduled
  std::vector<Binding> bindings;  // in parameter order
  std::string id;                 // as in decision ids
  double seconds = 0;             // by the cost model
  int32_t own = -1;               // index into Step::own
};

struct StepPlan {
  std::vector<Launch> launches;
  std::vector<ChosenCopy> copies;    // after all launches
  std::vector<Storage> reports;      // parallel to the step's outputs
  double seconds = 0;                // of the step, by the cost model
  search::CostVector cost;           // the same as chosen, and what it is made of
  std::optional<PackOrder> packing;  // of its arena, where it is forced
};

// Builds, schedules and orders (launch_order.h).
StepPlan PlanStep(const Step& step, const ChooseResult& chosen, const KernelCostModel& costs,
                  const ChooseOptions& options, search::Explanation& explanation,
                  std::optional<search::SearchFailure>& failure);

}  // namespace l3c::l0::lower
