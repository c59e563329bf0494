// The text of L0. One file is a whole plan; see docs/l0.md for the grammar and an annotated
// example.
//
// Print(Parse(text)) is canonical, and Parse(Print(plan)) equals the plan in all but spans: every
// field of the plan has a place in the text. Printing expects a plan whose ids are in range (what
// VerifyPlan checks first).
#pragma once

#include <optional>
#include <string>

#include "layers/l0/plan.h"
#include "layers/support/diagnostics.h"
#include "layers/support/parser.h"
#include "layers/support/printer.h"
#include "layers/support/source.h"

namespace l3c::l0 {

std::string PrintPlan(const Plan& plan);

// Nothing when anything was reported. References are resolved here: an unknown name is an error
// with the closest match as fix. Whether the plan is sound is VerifyPlan's business.
std::optional<Plan> ParsePlan(const support::SourceFile& source, support::Diagnostics& diagnostics);

}  // namespace l3c::l0
