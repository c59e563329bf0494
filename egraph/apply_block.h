// Carrying out the actions of a rule for many matches at once.
//
// Applying a match looks up one row after the other in tables that no cache holds, and each lookup
// waits for memory. The actions of most rules only add e-nodes and unite classes, and the graph
// that they lead to is the same, up to the names of new classes, in whatever order they happen. So
// they are carried out action by action over a block of matches: the lookups of one action know
// nothing of each other, and their waits overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/rule.h"

namespace l3c::egraph {

class BlockRunner {
 public:
  static constexpr uint32_t kMatches = 64;  // of a block, at most

  explicit BlockRunner(EGraph& graph) : graph_(graph) {}

  // Prepares for the matches of `rule`. False when its actions are none that may be carried out in
  // blocks, or when proofs ask which match did what.
  bool Begin(const Rule& rule);
  // New rows that one match can add, at most.
  uint32_t RowsPerMatch() const { return static_cast<uint32_t>(rule_->actions.size()); }
  // Carries out the actions on behalf of graph.current_rule() for `count` matches, which lie one
  // after the other in `values`: of each the slots `used`, in order.
  void Apply(const uint32_t* values, uint32_t count, std::span<const uint32_t> used);

 private:
  using Column = uint32_t[kMatches];

  void MakeCanonical(const Operand& operand, uint32_t count);
  void Add(const Action& action, uint32_t count);
  void AddAs(const Action& action, uint32_t count);
  // Fills args_, hashes_ and slots_ for an action on `table`, and has its rows fetched.
  void Fetch(Table& table, const Action& action, uint32_t count);

  EGraph& graph_;
  const Rule* rule_ = nullptr;
  std::vector<uint32_t> columns_;  // by slot: kMatches values
  std::vector<uint32_t> args_;     // by match: the arguments of the action at hand
  Column hashes_;
  Column slots_;
};

}  // namespace l3c::egraph
