// Random corruptions of a plan, each of which makes it wrong: there is no plan of which one of them
// makes another good plan, so that a verifier that accepts the outcome has a hole.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "layers/l0/plan.h"

namespace l3c::l0::testing {

struct Corruption {
  const char* row;  // of the verifier's table: "kernel", "lifetime", "hazard", "sync", "capacity",
                    // "headroom", "reference", "control"
  const char* name;
  // Changes the plan and says how; "" when the plan has nothing that it could change.
  std::string (*apply)(Plan& plan, std::mt19937_64& random);
};

const std::vector<Corruption>& Corruptions();

}  // namespace l3c::l0::testing
