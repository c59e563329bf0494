#include "egraph/apply_block.h"

#include <algorithm>

namespace l3c::egraph {

bool BlockRunner::Begin(const Rule& rule, std::span<const uint32_t> used, WorkerPool* pool) {
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
  used_ = used;
  applied_ = 0;
  added_.assign(rule.actions.size(), 0);
  // To make a container canonical may intern one, and what finds overwrite is written down while a
  // level is open.
  const bool interns = std::any_of(rule.slot_sorts.begin(), rule.slot_sorts.end(),
                                   [this](SortId sort) { return graph_.sort(sort).moves; });
  pool_ = interns || graph_.level_count() != 0 ? nullptr : pool;
  return true;
}

template <typename Fn>
void BlockRunner::ForPieces(Fn&& fn) {
  constexpr uint32_t kPiece = BulkInsert::kPiece;
  if (pool_ == nullptr || count_ <= kPiece) {
    fn(0, count_);
    return;
  }
  pool_->For((count_ + kPiece - 1) / kPiece,
             [&](uint32_t piece) { fn(piece * kPiece, std::min(count_, (piece + 1) * kPiece)); });
}

void BlockRunner::Take(const uint32_t* values, uint32_t count) {
  count_ += count;
  runs_.push_back({values, count_});
}

void BlockRunner::Apply() {
  columns_.resize(std::max(columns_.size(), rule_->slot_sorts.size() * count_));
  ForPieces([this](uint32_t from, uint32_t to) { Load(from, to); });
  bool united = false;
  for (size_t a = 0; a < rule_->actions.size(); ++a) {
    const Action& action = rule_->actions[a];
    switch (action.kind) {
      case Action::Kind::kAdd:
        Insert(a, united);
        break;
      case Action::Kind::kAddAs:
        Insert(a, united);
        united = true;
        break;
      case Action::Kind::kUnion:
        Unite(action);
        united = true;
        break;
      default:  // kGlobal
        std::fill_n(Column(action.result), count_, action.value.bits);
        MakeCanonical(Operand::Slot(action.result), 0, count_);
        break;
    }
  }
  runs_.clear();
  applied_ += count_;
  count_ = 0;
}

void BlockRunner::Load(uint32_t from, uint32_t to) {
  const size_t width = used_.size();
  auto run = std::upper_bound(runs_.begin(), runs_.end(), from,
                              [](uint32_t match, const Run& r) { return match < r.end; });
  for (uint32_t begin = from; begin < to; ++run) {
    const uint32_t first = run == runs_.begin() ? 0 : std::prev(run)->end;
    const uint32_t end = std::min(to, run->end);
    for (size_t i = 0; i < width; ++i) {
      const uint32_t* values = run->values + (begin - first) * width + i;
      uint32_t* column = Column(used_[i]);
      for (uint32_t m = begin; m < end; ++m, values += width) column[m] = *values;
    }
    begin = end;
  }
  for (const uint32_t slot : used_) MakeCanonical(Operand::Slot(slot), from, to);
}

void BlockRunner::MakeCanonical(const Operand& operand, uint32_t from, uint32_t to) {
  if (operand.is_constant) return;
  const SortId sort = rule_->slot_sorts[operand.bits];
  uint32_t* column = Column(operand.bits);
  if (graph_.sort(sort).is_equality) {
    for (uint32_t m = from; m < to; ++m) column[m] = graph_.union_find_.Find(column[m]);
  } else if (graph_.sort(sort).moves) {
    for (uint32_t m = from; m < to; ++m) column[m] = graph_.Canonical(sort, Value{column[m]}).bits;
  }
}

void BlockRunner::Insert(size_t number, bool united) {
  const Action& action = rule_->actions[number];
  const Function& f = graph_.functions_[action.function.index];
  const bool constructor = f.kind == FunctionKind::kConstructor;
  const bool as = action.kind == Action::Kind::kAddAs;
  BulkInsert::Job job;
  job.table = &graph_.tables_[action.function.index];
  job.count = count_;
  job.rule = graph_.current_rule_;
  job.new_classes = constructor && !as;
  job.first_class = static_cast<uint32_t>(graph_.union_find_.size());
  bulk_.Begin(job, pool_);

  const size_t arity = action.args.size();
  const auto fill = [&](uint32_t from, uint32_t to) {
    for (size_t i = 0; i < arity; ++i) {
      const Operand& operand = action.args[i];
      uint32_t* out = bulk_.Args(from) + i;
      if (operand.is_constant) {
        for (uint32_t m = from; m < to; ++m, out += arity) *out = operand.bits;
        continue;
      }
      if (united) MakeCanonical(operand, from, to);
      const uint32_t* column = Column(operand.bits);
      for (uint32_t m = from; m < to; ++m, out += arity) *out = column[m];
    }
    if (!as) {
      if (!constructor) std::fill_n(&bulk_.Output(from), to - from, 0);
      return;
    }
    const uint32_t* column = action.value.is_constant ? nullptr : Column(action.value.bits);
    for (uint32_t m = from; m < to; ++m) {
      const uint32_t value = column == nullptr ? action.value.bits : column[m];
      bulk_.Output(m) = graph_.union_find_.Find(value);
    }
  };
  const auto settle = [&](uint32_t from, uint32_t to) {
    if (as) return;
    uint32_t* result = Column(action.result);
    for (uint32_t m = from; m < to; ++m) {
      const uint32_t output = bulk_.RowOutput(m);
      // What the table does not have yet is a representative, and no id before it has been added.
      result[m] =
          output < job.first_class && constructor ? graph_.union_find_.Find(output) : output;
    }
  };
  bulk_.Insert(fill, settle);
  added_[number] += bulk_.new_rows();
  graph_.live_rows_ += bulk_.new_rows();
  graph_.version_ += bulk_.new_rows();
  if (job.new_classes) graph_.NewClasses(f.output, bulk_.new_rows());
  if (!as) return;
  for (uint32_t m = 0; m < count_; ++m) {
    if (bulk_.RowOutput(m) == bulk_.Output(m)) continue;
    graph_.UnionAs(Value{bulk_.RowOutput(m)}, Value{bulk_.Output(m)}, job.rule);
  }
}

void BlockRunner::Unite(const Action& action) {
  const auto value = [&](const Operand& operand, uint32_t m) {
    return Value{operand.is_constant ? operand.bits : Column(operand.bits)[m]};
  };
  for (uint32_t m = 0; m < count_; ++m) {
    graph_.Union(value(action.args[0], m), value(action.args[1], m));
  }
}

}  // namespace l3c::egraph
