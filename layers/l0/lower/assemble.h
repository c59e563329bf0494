// The plan that a program's steps make together: pools and buffers with their offsets, streams and
// the tokens between them, sequences of commands, and the control units that push them.
#pragma once

#include <map>
#include <string>

#include "layers/l0/lower/choose.h"
#include "layers/l0/lower/step.h"
#include "layers/l0/lower/step_plan.h"
#include "layers/l0/lower/values.h"
#include "layers/l0/plan.h"
#include "layers/l1/ir.h"
#include "layers/support/diagnostics.h"

namespace l3c::l0::lower {

// A pipeline with all its decisions made.
struct LoweredStep {
  Step step;
  ValueTable table;
  StepPlan plan;
  ChooseOptions options;  // that it was lowered with
};

// `steps`: one for each pipeline that a phase of the program runs. `one_of_each`: stream that loads
// and that computes. False when anything was reported.
bool AssemblePlan(const l1::Program& program, const std::map<std::string, LoweredStep>& steps,
                  bool one_of_each, Plan& plan, support::Diagnostics& diagnostics);

}  // namespace l3c::l0::lower
