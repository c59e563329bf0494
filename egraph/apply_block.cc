#include "egraph/apply_block.h"

#include <algorithm>

namespace l3c::egraph {

bool BlockRunner::Begin(const Rule& rule) {
  if (graph_.proof_log() != nullptr) return false;
  for (const Action& action : rule.actions) {
    switch (action.kind) {
      case Action::Kind::kAdd:
      case Action::Kind::kAddAs:
        // A merge of other values may depend on the order of matches.
        if (graph_.function(action.function).kind == FunctionKind::kFunction) return false;
        break;
      case Action::Kind::kUnion:
      case Action::Kind::kGlobal:
        break;
      default:
        return false;
    }
  }
  rule_ = &rule;
  columns_.resize(rule.slot_sorts.size() * kMatches);
  return true;
}

void BlockRunner::Apply(const uint32_t* values, uint32_t count, std::span<const uint32_t> used) {
  const Rule& rule = *rule_;
  for (uint32_t i = 0; i < used.size(); ++i) {
    uint32_t* column = columns_.data() + used[i] * kMatches;
    for (uint32_t m = 0; m < count; ++m) column[m] = values[m * used.size() + i];
    MakeCanonical(Operand::Slot(used[i]), count);
  }
  bool united = false;
  for (const Action& action : rule.actions) {
    if (united) {
      for (const Operand& operand : action.args) MakeCanonical(operand, count);
    }
    switch (action.kind) {
      case Action::Kind::kAdd:
        Add(action, count);
        break;
      case Action::Kind::kAddAs:
        AddAs(action, count);
        united = true;
        break;
      case Action::Kind::kUnion: {
        const auto value = [&](const Operand& operand, uint32_t m) {
          return Value{operand.is_constant ? operand.bits : columns_[operand.bits * kMatches + m]};
        };
        for (uint32_t m = 0; m < count; ++m) {
          graph_.Union(value(action.args[0], m), value(action.args[1], m));
        }
        united = true;
        break;
      }
      default:  // kGlobal
        std::fill_n(columns_.data() + action.result * kMatches, count, action.value.bits);
        MakeCanonical(Operand::Slot(action.result), count);
        break;
    }
  }
}

void BlockRunner::MakeCanonical(const Operand& operand, uint32_t count) {
  if (operand.is_constant) return;
  const SortId sort = rule_->slot_sorts[operand.bits];
  uint32_t* column = columns_.data() + operand.bits * kMatches;
  if (graph_.sort(sort).is_equality) {
    for (uint32_t m = 0; m < count; ++m) column[m] = graph_.union_find_.Find(column[m]);
  } else if (graph_.sort(sort).moves) {
    for (uint32_t m = 0; m < count; ++m) column[m] = graph_.Canonical(sort, Value{column[m]}).bits;
  }
}

void BlockRunner::Fetch(Table& table, const Action& action, uint32_t count) {
  const size_t arity = action.args.size();
  args_.resize(arity * kMatches);
  table.Reserve(count);
  for (size_t i = 0; i < arity; ++i) {
    const Operand& operand = action.args[i];
    uint32_t* to = args_.data() + i;
    if (operand.is_constant) {
      for (uint32_t m = 0; m < count; ++m) to[m * arity] = operand.bits;
    } else {
      const uint32_t* from = columns_.data() + operand.bits * kMatches;
      for (uint32_t m = 0; m < count; ++m) to[m * arity] = from[m];
    }
  }
  for (uint32_t m = 0; m < count; ++m) {
    hashes_[m] = table.Hash(args_.data() + m * arity);
    table.FetchSlot(hashes_[m]);
  }
  for (uint32_t m = 0; m < count; ++m) slots_[m] = table.Probe(hashes_[m]);
}

void BlockRunner::Add(const Action& action, uint32_t count) {
  const Function& f = graph_.functions_[action.function.index];
  Table& table = graph_.tables_[action.function.index];
  Fetch(table, action, count);
  uint32_t* result = columns_.data() + action.result * kMatches;
  const bool constructor = f.kind == FunctionKind::kConstructor;
  for (uint32_t m = 0; m < count; ++m) {
    const uint32_t next = constructor ? static_cast<uint32_t>(graph_.union_find_.size()) : 0;
    const auto [row, inserted] = table.FindOrAppendAt(
        slots_[m], hashes_[m], args_.data() + m * action.args.size(), next, graph_.current_rule_);
    if (inserted) {
      if (constructor) graph_.NewClass(f.output);
      ++graph_.live_rows_;
      ++graph_.version_;
      result[m] = next;
    } else {
      result[m] = constructor ? graph_.union_find_.Find(table.Output(row)) : 0;
    }
  }
}

void BlockRunner::AddAs(const Action& action, uint32_t count) {
  Table& table = graph_.tables_[action.function.index];
  Fetch(table, action, count);
  for (uint32_t m = 0; m < count; ++m) {
    const uint32_t value = graph_.union_find_.Find(
        action.value.is_constant ? action.value.bits : columns_[action.value.bits * kMatches + m]);
    const auto [row, inserted] = table.FindOrAppendAt(
        slots_[m], hashes_[m], args_.data() + m * action.args.size(), value, graph_.current_rule_);
    if (inserted) {
      ++graph_.live_rows_;
      ++graph_.version_;
    } else {
      graph_.UnionAs(Value{table.Output(row)}, Value{value}, graph_.current_rule_);
    }
  }
}

}  // namespace l3c::egraph
