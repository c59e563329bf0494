// Undo: what EGraph::Push() writes down and Pop() takes back.
//
// Most of the graph only grows, so that a size says what was there: Pop() cuts. Tables and the
// union-find, whose older parts change too, keep trails of their own. What else is overwritten
// (globals, clocks, flags) is small and kept as a copy.
#include <bit>
#include <cassert>
#include <utility>

#include "egraph/egraph.h"

namespace l3c::egraph {

void EGraph::Push() {
  assert(!in_action_);
  for (Table& table : tables_) table.Push();
  union_find_.Push();
  Level level;
  level.sorts = sorts_.size();
  level.functions = functions_.size();
  level.primitives = primitives_.size();
  level.rulesets = ruleset_names_.size();
  level.rules = rules_.size();
  level.large_ints = VectorMark(large_ints_);
  level.floats = VectorMark(floats_);
  level.strings = strings_.size();
  level.string_bytes = string_bytes_;
  level.containers = containers_.mark();
  level.classes = class_sorts_.size();
  level.classes_capacity = class_sorts_.capacity();
  level.unions = VectorMark(unions_);
  level.dirty_classes = dirty_classes_;
  level.dirty_capacity = dirty_classes_.capacity();
  level.defer_unions = defer_unions_;
  level.deferred_unions = deferred_unions_;
  level.live_rows = live_rows_;
  level.clock = clock_;
  level.rule_clock = rule_clock_;
  level.histories = histories_;
  level.schedulers = schedulers_;
  level.numerics = numerics_;
  level.failure = failure_;
  if (proof_log_) level.proof_log = proof_log_->mark();
  level.search_cache = search_cache_.Save();
  level.globals = old_globals_.size();
  level.hidden = old_hidden_.size();
  levels_.push_back(std::move(level));
}

void EGraph::Pop() {
  assert(!levels_.empty() && !in_action_);
  Level level = std::move(levels_.back());
  levels_.pop_back();

  for (; old_globals_.size() > level.globals; old_globals_.pop_back()) {
    auto& [name, old] = old_globals_.back();
    if (old) {
      globals_.insert_or_assign(name, *old);
    } else {
      globals_.erase(name);
    }
  }
  for (; old_hidden_.size() > level.hidden; old_hidden_.pop_back()) {
    const auto [f, hidden] = old_hidden_.back();
    functions_[f.index].hidden = hidden;
  }

  for (; functions_.size() > level.functions; functions_.pop_back()) {
    function_by_name_.erase(functions_.back().name);
    tables_.pop_back();
  }
  for (Table& table : tables_) table.Pop();
  for (; primitives_.size() > level.primitives; primitives_.pop_back()) {
    const auto it = primitives_by_name_.find(primitives_.back().name);
    it->second.pop_back();
    if (it->second.empty()) primitives_by_name_.erase(it);
  }
  for (; sorts_.size() > level.sorts; sorts_.pop_back()) sort_by_name_.erase(sorts_.back().name);
  for (; ruleset_names_.size() > level.rulesets; ruleset_names_.pop_back()) {
    ruleset_by_name_.erase(ruleset_names_.back());
  }
  ruleset_members_.resize(level.rulesets);
  ruleset_combined_.resize(level.rulesets);
  rules_.resize(level.rules);
  rule_clock_ = std::move(level.rule_clock);
  histories_ = std::move(level.histories);
  schedulers_ = std::move(level.schedulers);
  absl::erase_if(scheduler_by_name_,
                 [this](const auto& entry) { return entry.second.index >= schedulers_.size(); });
  // A plan made anew might find the same matches in another order.
  search_cache_.Restore(std::move(level.search_cache));

  for (size_t i = level.large_ints.size; i < large_ints_.size(); ++i) {
    large_int_index_.erase(large_ints_[i]);
  }
  level.large_ints.CutBack(&large_ints_);
  for (size_t i = level.floats.size; i < floats_.size(); ++i) {
    float_index_.erase(std::bit_cast<uint64_t>(floats_[i]));
  }
  level.floats.CutBack(&floats_);
  for (; strings_.size() > level.strings; strings_.pop_back()) string_index_.erase(strings_.back());
  string_bytes_ = level.string_bytes;
  containers_.Rewind(level.containers);

  union_find_.Pop();
  class_sorts_.Truncate(level.classes, level.classes_capacity);
  level.unions.CutBack(&unions_);
  dirty_classes_ = std::move(level.dirty_classes);
  dirty_classes_.reserve(level.dirty_capacity);
  defer_unions_ = level.defer_unions;
  deferred_unions_ = std::move(level.deferred_unions);
  if (level.proof_log) {
    proof_log_->Rewind(*level.proof_log);
  } else {
    proof_log_.Drop();
  }
  live_rows_ = level.live_rows;
  clock_ = level.clock;
  numerics_ = level.numerics;
  failure_ = std::move(level.failure);
  // Neither comes back: whoever remembers one must not take what comes next for what was undone.
  ++version_;
  ++epoch_;
}

void EGraph::DropLevel() {
  assert(!levels_.empty() && !in_action_);
  const size_t functions = levels_.back().functions;
  levels_.pop_back();
  if (levels_.empty()) {
    old_globals_.clear();
    old_hidden_.clear();
    search_cache_.ForgetSaved();
  }
  for (size_t f = 0; f < functions; ++f) tables_[f].DropLevel();
  union_find_.DropLevel();
}

}  // namespace l3c::egraph
