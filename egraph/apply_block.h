// Carrying out the actions of a rule for many matches at once.
//
// Applying a match looks up one row after the other in tables that no cache holds, and each lookup
// waits for memory. The actions of most rules only add e-nodes and unite classes, and the graph
// that they lead to is the same, up to the names of new classes, in whatever order they happen. So
// they are carried out action by action over a block of matches: the lookups of one action know
// nothing of each other, and their waits overlap. In a large block, several threads share them
// (bulk_insert.h); what comes out is the same for any number of threads.
//
// What an action unites is united when it has been carried out for the whole block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/bulk_insert.h"
#include "egraph/egraph.h"
#include "egraph/rule.h"
#include "egraph/worker_pool.h"

namespace l3c::egraph {

class BlockRunner {
 public:
  static constexpr uint32_t kSmall = 64;    // matches of a block
  static constexpr uint32_t kLarge = 8192;  // of one that threads share

  explicit BlockRunner(EGraph& graph) : graph_(graph) {}

  // Prepares for the matches of `rule`, of which there are the values of the slots `used`, in
  // order. False when its actions are none that may be carried out in blocks, or when proofs ask
  // which match did what. `pool` may be null: one thread.
  bool Begin(const Rule& rule, std::span<const uint32_t> used, WorkerPool* pool);
  // New rows that one match can add, at most.
  uint32_t RowsPerMatch() const { return static_cast<uint32_t>(rule_->actions.size()); }

  // Adds matches to the block, whose values lie one after the other and stay there until Apply().
  void Take(const uint32_t* values, uint32_t count);
  uint32_t taken() const { return count_; }
  // Carries out the actions on behalf of graph.current_rule() for the matches that were taken, and
  // empties the block.
  void Apply();
  // The rows that an action may be expected to add for `matches` more: as many as it has added
  // since Begin(), in proportion.
  uint64_t Expected(size_t action, uint64_t matches) const {
    return applied_ == 0 ? 0 : matches * added_[action] / applied_;
  }

 private:
  struct Run {
    const uint32_t* values;
    uint32_t end;  // of its matches, in the block
  };

  uint32_t* Column(uint32_t slot) { return columns_.data() + size_t{slot} * count_; }
  // Calls `fn(from, to)` for pieces of the block, on any thread.
  template <typename Fn>
  void ForPieces(Fn&& fn);
  void Load(uint32_t from, uint32_t to);
  void MakeCanonical(const Operand& operand, uint32_t from, uint32_t to);
  void Insert(size_t number, bool united);
  void Unite(const Action& action);

  EGraph& graph_;
  const Rule* rule_ = nullptr;
  std::span<const uint32_t> used_;
  WorkerPool* pool_ = nullptr;
  std::vector<Run> runs_;
  uint32_t count_ = 0;
  uint64_t applied_ = 0;           // matches since Begin()
  std::vector<uint64_t> added_;    // rows, by action
  std::vector<uint32_t> columns_;  // by slot: a value for each match
  BulkInsert bulk_;
};

}  // namespace l3c::egraph
