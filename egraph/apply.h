// Carrying out the actions of a rule for one match.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/rule.h"

namespace l3c::egraph {

class ActionRunner {
 public:
  explicit ActionRunner(EGraph& graph) : graph_(graph) {}

  // The slots of `rule`, for the caller to fill with the match. Valid until the next call.
  std::span<uint32_t> Slots(const Rule& rule) {
    slots_.resize(rule.slot_sorts.size());
    return slots_;
  }
  // Carries out the actions in order on behalf of graph.current_rule(). Values that went stale
  // since the match are found again. False when the graph has failed, which it then says why.
  bool Apply(const Rule& rule);

 private:
  bool Act(const Rule& rule, const Action& action);
  uint32_t Resolve(const Rule& rule, const Operand& operand) const {
    if (operand.is_constant) return operand.bits;
    return graph_.Canonical(rule.slot_sorts[operand.bits], Value{slots_[operand.bits]}).bits;
  }

  // As it was when the match was found: whoever stores it makes it canonical.
  uint32_t Raw(const Operand& operand) const {
    return operand.is_constant ? operand.bits : slots_[operand.bits];
  }

  EGraph& graph_;
  std::vector<uint32_t> slots_;
};

}  // namespace l3c::egraph
