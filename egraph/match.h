// Finding the matches of a query: join planning and execution.
//
// A query is joined atom by atom. The next atom is the one expected to have the fewest matching
// rows given the slots bound so far; it is scanned when nothing is bound, looked up in the hash of
// its table when all arguments are, and else probed through a column index, which is built on first
// use and extended by new rows afterwards. Primitives run as soon as their arguments are bound.
//
// Semi-naive evaluation asks for the matches that hold at least one new row. They are split by the
// first atom that matches a new one: for atom i, the atoms before it match old rows, it matches new
// rows, the atoms after it match all. The parts are disjoint, and a part whose atom i has no new
// rows costs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/rule.h"

namespace l3c::egraph {

class Matcher {
 public:
  explicit Matcher(EGraph& graph) : graph_(graph) {}

  // The rows that are new for a query: those from `old_rows[i]` on, for each atom i.
  struct Delta {
    std::vector<uint32_t> old_rows;
  };

  // Calls `sink(slots)` for every match with a new row, in a fixed order, until it gives false. The
  // values are canonical while the graph does not change. Returns false when the sink did.
  template <typename Sink>
  bool ForEachMatch(const Query& query, const Delta& delta, Sink&& sink);

  // Whether subsumed rows match as well.
  void SeeSubsumed(bool see) { see_subsumed_ = see; }

  // Rows and primitives tried so far.
  uint64_t work() const { return work_; }

 private:
  enum class Range : uint8_t { kAll, kOld, kNew };
  struct Check {  // column against a slot or a constant, or into a slot
    enum class Kind : uint8_t { kSlot, kConstant, kBind } kind;
    uint32_t column;
    uint32_t bits;
  };
  struct Step {
    enum class Kind : uint8_t { kScan, kLookup, kProbe, kPrimitive } kind;
    // Atoms.
    Table* table = nullptr;
    const ColumnIndex* index = nullptr;
    uint32_t from = 0, to = 0;                  // rows in range: [from, to)
    uint32_t first_key = 0, key_count = 0;      // into keys_
    uint32_t first_check = 0, check_count = 0;  // into checks_
    // Primitives.
    const PrimitiveFn* fn = nullptr;
    Check output{Check::Kind::kConstant, 0, 0};
  };

  // Plans `query` with atom `delta_atom` on new rows (none: all atoms on all rows). False when some
  // atom has no row in range, so that nothing can match.
  bool Plan(const Query& query, const Delta& delta, size_t delta_atom);
  // Adds the primitives whose arguments are bound by now.
  void PlanPrimitives(const Query& query);
  bool IsBound(const Operand& operand) const { return operand.is_constant || bound_[operand.bits]; }
  uint64_t BoundColumns(const Atom& atom) const;
  bool SharesSlot(const Atom& atom) const;
  // The rows expected to match an atom, given what is bound.
  double Expected(const Atom& atom, uint32_t rows) const;
  void PlanAtom(const Atom& atom, uint32_t from, uint32_t to);

  template <typename Sink>
  bool Execute(size_t step, Sink& sink);
  bool Accept(const Step& step, uint32_t row);

  EGraph& graph_;
  uint64_t work_ = 0;
  bool see_subsumed_ = false;
  std::vector<Step> steps_;
  std::vector<Operand> keys_;  // operands of lookups, probes and primitives
  std::vector<Check> checks_;
  std::vector<uint8_t> bound_;               // by slot
  std::vector<uint8_t> planned_primitives_;  // by primitive atom
  struct Candidate {
    uint32_t atom, from, to;
  };
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> slots_;
};

template <typename Sink>
bool Matcher::ForEachMatch(const Query& query, const Delta& delta, Sink&& sink) {
  slots_.assign(query.slot_sorts.size(), Value::kNone);
  for (const Query::Preset& preset : query.presets) {
    slots_[preset.slot] =
        graph_.Canonical(query.slot_sorts[preset.slot], preset.value).bits;
  }
  if (query.atoms.empty()) {
    return !Plan(query, delta, 0) || Execute(0, sink);
  }
  for (size_t i = 0; i < query.atoms.size(); ++i) {
    if (Plan(query, delta, i) && !Execute(0, sink)) return false;
    // Without old rows the atoms before the next one match nothing.
    if (delta.old_rows[i] == 0) break;
  }
  return true;
}

template <typename Sink>
bool Matcher::Execute(size_t number, Sink& sink) {
  if (number == steps_.size()) return sink(slots_.data());
  const Step& step = steps_[number];
  uint32_t key[EGraph::kMaxArity + 1];
  for (uint32_t i = 0; i < step.key_count; ++i) {
    const Operand& operand = keys_[step.first_key + i];
    key[i] = operand.is_constant ? operand.bits : slots_[operand.bits];
  }
  switch (step.kind) {
    case Step::Kind::kScan:
      for (uint32_t row = step.from; row < step.to; ++row) {
        ++work_;
        if (Accept(step, row) && !Execute(number + 1, sink)) return false;
      }
      return true;
    case Step::Kind::kLookup: {
      ++work_;
      const uint32_t row = step.table->Find(key);
      if (row == Table::kNoRow || row < step.from || row >= step.to) return true;
      return !Accept(step, row) || Execute(number + 1, sink);
    }
    case Step::Kind::kProbe:
      // Chains run from new rows to old ones.
      for (uint32_t row = step.table->Newest(*step.index, key);
           row != ColumnIndex::kEnd && row >= step.from; row = step.index->Next(row)) {
        ++work_;
        if (row < step.to && Accept(step, row) && !Execute(number + 1, sink)) return false;
      }
      return true;
    case Step::Kind::kPrimitive: {
      ++work_;
      Value args[EGraph::kMaxArity + 1];
      for (uint32_t i = 0; i < step.key_count; ++i) args[i] = Value{key[i]};
      const std::optional<Value> result = (*step.fn)(graph_, std::span(args, step.key_count));
      if (!result) return true;
      if (step.output.kind == Check::Kind::kBind) {
        slots_[step.output.bits] = result->bits;
      } else if (result->bits != (step.output.kind == Check::Kind::kSlot ? slots_[step.output.bits]
                                                                         : step.output.bits)) {
        return true;
      }
      return Execute(number + 1, sink);
    }
  }
  return true;
}

}  // namespace l3c::egraph
