// A plan as tables: what a program that holds its kernels and control units as machine code needs
// of the plan to run it, read without a parser.
//
// Everything but the bodies of kernels, their lineage and the places in the text is kept. Writing
// expects a plan that VerifyPlan accepts; what is read is checked for damage only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/l0/plan.h"

namespace l3c::l0 {

std::string WritePlanTables(const Plan& plan);

// Nothing when the bytes are not those of a plan.
std::optional<Plan> ReadPlanTables(std::string_view bytes);

}  // namespace l3c::l0
