// Why there is no placement, or none of a kind: the cause that holds, and a way out of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/l1/ir.h"
#include "layers/l1/place.h"
#include "layers/l1/place_facts.h"
#include "layers/l1/place_model.h"

namespace l3c::l1 {

struct PlacementCause {
  std::string reason;
  std::string hint;
};

// Why bytes cannot be copied from one memory to another: there is no path of edges, only one the
// other way, or only one through a third memory. Nothing where they can.
std::optional<PlacementCause> WhyNoCopy(const System& system, uint32_t from, uint32_t to);

// Why the state has no home: neither a memory that a node works in, nor one that it can be brought
// in from. `near`: memories that nodes work in.
PlacementCause WhyNoHome(const System& system, const StepDemand& demand,
                         const PlacementModel& model, const std::vector<uint32_t>& near);

// Why no placement is left of which `held` holds: decision → label.
PlacementCause WhyNoPlacement(const System& system, const StepDemand& demand,
                              const PlacementModel& model, const PlacementFacts& facts,
                              const std::map<std::string, std::string>& held);

// Why a decision has no such label, or no plan with it; "" where no single cause can be told.
std::string WhyNoChoice(const StepDemand& demand, const PlacementFacts& facts,
                        const std::string& decision, const std::string& label);
std::string WhyNoPlanWith(const System& system, const PlacementModel& model,
                          const PlacementFacts& facts, const std::string& decision,
                          const std::string& label);

}  // namespace l3c::l1
