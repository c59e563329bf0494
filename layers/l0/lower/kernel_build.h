// A chosen kernel as UOps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layers/l0/kernel.h"
#include "layers/l0/lower/choose.h"

namespace l3c::l0::lower {

// What a parameter of the kernel is bound to.
struct Binding {
  Storage storage;     // a value in memory …
  int32_t state = -1;  // … or, ≥ 0, a state field's own buffer
  auto operator<=>(const Binding&) const = default;
};

struct BuiltKernel {
  Kernel kernel;                  // unscheduled: all axes are loops or reductions
  std::vector<Binding> bindings;  // in parameter order
  std::string form;               // anchored: the schedule that the choice counted on
  int32_t own = -1;               // index into Step::own: the user's kernel, as it is
};

// A name of anything as that of a kernel or a parameter.
std::string Identifier(const std::string& name);

// The name is not unique yet.
BuiltKernel BuildKernel(const Step& step, const ValueTable& table, const CandidateSet& candidates,
                        const Selection& selection, const ChosenKernel& chosen);

// Joins neighbouring axes that every access walks as if they were one, so that a long one is left
// for lanes and blocks.
void MergeAxes(Kernel& kernel);

}  // namespace l3c::l0::lower
