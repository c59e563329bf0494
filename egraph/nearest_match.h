// The match of a query that comes nearest to being one.
//
// A search of its own, apart from the one that runs rules: it keeps the deepest partial match it
// has met, and it may start from slots that are bound already.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/egraph.h"
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
  // Looks at no more rows than `max_rows` in each search. `graph` must be rebuilt and stay so.
  explicit NearestMatch(EGraph& graph, uint64_t max_rows = 2'000'000)
      : graph_(graph), max_rows_(max_rows) {}

  // Whether subsumed rows match as well.
  void SeeSubsumed(bool see) { see_subsumed_ = see; }

  // `bound` holds a value for each slot, invalid where it is free. Atoms from `goals` on are tried
  // after all other premises.
  PartialMatch Find(const Query& query, std::span<const Value> bound, size_t goals);
  PartialMatch Find(const Query& query);

 private:
  struct Premise {
    bool primitive;
    uint32_t number;
  };
  void Order(const Query& query, size_t goals);
  bool Search(size_t depth);
  bool TryAtom(size_t depth, const Atom& atom);
  bool TryRow(size_t depth, const Atom& atom, uint32_t row);
  bool TryPrimitive(size_t depth, const PrimitiveAtom& primitive);
  bool IsBound(const Operand& o) const { return o.is_constant || slots_[o.bits].valid(); }
  uint32_t BitsOf(const Operand& o) const { return o.is_constant ? o.bits : slots_[o.bits].bits; }
  const std::vector<uint32_t>& Rows(FunctionId f, uint64_t mask, const std::vector<uint32_t>& key);

  EGraph& graph_;
  const uint64_t max_rows_;
  bool see_subsumed_ = false;
  uint64_t rows_ = 0;
  const Query* query_ = nullptr;
  std::vector<Premise> order_;
  std::vector<Value> slots_;
  PartialMatch best_;
  // Visible rows by function, key columns and key.
  using Keyed = absl::flat_hash_map<std::vector<uint32_t>, std::vector<uint32_t>>;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Keyed> rows_by_key_;
};

}  // namespace l3c::egraph
