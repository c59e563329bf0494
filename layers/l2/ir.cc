#include "layers/l2/ir.h"

namespace l3c::l2 {

Phase DefaultPhase() {
  Phase phase;
  phase.name = "main";
  phase.epochs = 10;
  return phase;
}

const Methods* Module::FindMethods(std::string_view model) const {
  for (const Methods& m : methods) {
    if (m.model == model) return &m;
  }
  return nullptr;
}

}  // namespace l3c::l2
