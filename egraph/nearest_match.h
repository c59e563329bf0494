// The match of a query that comes nearest to being one.
//
// A search of its own, apart from the one that runs rules: it keeps the deepest partial match it
// has met, and it may start from slots that are bound already.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/egraph.h"
#include "egraph/extract/time_limit.h"
#include "egraph/rule.h"

namespace l3c::egraph {

struct PartialMatch {
  std::vector<Value> slots;  // invalid where not bound
  size_t matched = 0;        // premises that hold
  bool complete = false;
  // The premise that failed where the others held: an atom or a primitive of the query.
  std::optional<uint32_t> failed_atom;
  std::optional<uint32_t> failed_primitive;
  bool searched_all = true;  // false: the search was cut off
};

class NearestMatch {
 public:
  // Looks at no more rows than `max_rows`, and no longer than `limit`, in each search. `graph` must
  // be rebuilt and stay so.
  explicit NearestMatch(EGraph& graph, uint64_t max_rows = 2'000'000, TimeLimit limit = {})
      : graph_(graph), max_rows_(max_rows), limit_(limit) {}

  // Whether subsumed rows match as well.
  void SeeSubsumed(bool see) { see_subsumed_ = see; }

  // `bound` holds a value for each slot, invalid where it is free. Atoms from `goals` on are tried
  // after all other premises.
  PartialMatch Find(const Query& query, std::span<const Value> bound, size_t goals);
  PartialMatch Find(const Query& query);
  // Looked at by the latest search.
  uint64_t rows() const { return rows_; }

 private:
  struct Premise {
    bool primitive;
    uint32_t number;
  };
  // A premise that holds or is being tried: where its rows are and which slots it has bound.
  struct Frame {
    std::vector<uint32_t> rows;  // atoms: those that agree in the columns that were bound before
    size_t next = 0;
    std::vector<uint32_t> bound;
  };
  void Order(const Query& query, size_t goals);
  void Search();
  // Opens a frame for the next premise.
  void Open();
  // The next row, or the only result, with which the premise of the top frame holds.
  bool Advance();
  bool TryRow(Frame& frame, const Atom& atom, uint32_t row);
  bool TryPrimitive(Frame& frame, const PrimitiveAtom& primitive);
  void Unbind(Frame& frame);
  bool Bind(Frame& frame, const Operand& o, uint32_t bits);
  // So many premises hold.
  void Reach(size_t depth);
  bool IsBound(const Operand& o) const { return o.is_constant || slots_[o.bits].valid(); }
  uint32_t BitsOf(const Operand& o) const { return o.is_constant ? o.bits : slots_[o.bits].bits; }
  const std::vector<uint32_t>& Rows(FunctionId f, uint64_t mask, const std::vector<uint32_t>& key);

  EGraph& graph_;
  const uint64_t max_rows_;
  const TimeLimit limit_;
  bool see_subsumed_ = false;
  uint64_t rows_ = 0;
  bool over_ = false;  // the limits are reached
  const Query* query_ = nullptr;
  std::vector<Premise> order_;
  std::vector<Frame> frames_;
  std::vector<Value> slots_;
  PartialMatch best_;
  bool keeps_best_ = false;  // best_ has the slots of the deepest match
  // Visible rows by function, key columns and key.
  using Keyed = absl::flat_hash_map<std::vector<uint32_t>, std::vector<uint32_t>>;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Keyed> rows_by_key_;
};

}  // namespace l3c::egraph
