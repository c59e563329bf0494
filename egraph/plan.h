// Join plans: in which order the atoms of a query are met, and how each finds its rows.
//
// The next atom is the one expected to meet the fewest rows given the slots bound so far: it is
// scanned when nothing is bound, looked up in the hash of its table when all arguments are, and
// else probed through an index (join_index.h). Primitives run as soon as their arguments are bound.
// Planning is greedy: k atoms cost O(k²) estimates, never a search over orders.
//
// A plan is kept and used again while the numbers of rows are much as they were: search.cc says how
// much.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/join_index.h"
#include "egraph/rule.h"

namespace l3c::egraph {

// The indexes that plans of one graph use. A copy shares them with the original; whoever has to
// change one that is shared takes a copy of it first.
class JoinIndexes {
 public:
  // The index on the columns in `mask`, up to date with `table`, which is that of `f`.
  const JoinIndex& Get(FunctionId f, const Table& table, uint64_t mask);
  // Of those there are, the one on some of the columns in `mask` that meets the fewest rows a
  // probe; nullptr when there is none. It may lag behind the table.
  const JoinIndex* Best(FunctionId f, uint64_t mask) const;
  // How many rows of the table have the value in `column` that a row of it has, averaged over rows,
  // from a sample of them; what RowsPerProbe() of an index would be, had it been built.
  double Sampled(FunctionId f, const Table& table, uint32_t column);
  void Unshare();
  // With those that only copies of this still have.
  size_t Bytes() const;
  // There are no copies any more.
  void ForgetCopies() { left_bytes_ = 0; }

 private:
  struct Sample {
    uint32_t rows = 0;  // of the table then; 0: there is none
    double rows_per_probe = 0;
  };
  std::vector<std::vector<std::shared_ptr<JoinIndex>>> by_function_;
  std::vector<std::vector<Sample>> samples_;  // by function, by column
  size_t left_bytes_ = 0;
};

// Which rows of a table an atom may match, by whether the rule has seen them.
enum class RowRange : uint8_t { kAll, kOld, kNew };

struct JoinPlan {
  struct Check {  // a column against a slot or a constant, or into a slot
    enum class Kind : uint8_t { kSlot, kConstant, kBind } kind;
    uint32_t column;
    uint32_t bits;
  };
  struct Step {
    enum class Kind : uint8_t { kScan, kScanBack, kLookup, kProbe, kPrimitive } kind;
    // Atoms.
    uint32_t atom = 0;                          // of the query
    uint64_t index_mask = 0;                    // kProbe
    uint32_t first_key = 0, key_count = 0;      // into keys
    uint32_t first_check = 0, check_count = 0;  // into checks
    // Primitives.
    uint32_t primitive = 0;
    Check output{Check::Kind::kConstant, 0, 0};
  };
  std::vector<Step> steps;
  std::vector<Operand> keys;  // operands of lookups, probes and primitives
  std::vector<Check> checks;
};

// The rows that atom `i` of a part of a query may match; see Matcher for the parts.
inline RowRange RangeOf(size_t i, size_t delta_atom) {
  return i < delta_atom ? RowRange::kOld : i == delta_atom ? RowRange::kNew : RowRange::kAll;
}

class Planner {
 public:
  Planner(const EGraph& graph, JoinIndexes& indexes) : graph_(graph), indexes_(indexes) {}

  // `rows[i]`: how many rows atom i may match; atom `delta_atom` matches new ones.
  JoinPlan Plan(const Query& query, std::span<const uint32_t> rows, size_t delta_atom);

 private:
  bool IsBound(const Operand& operand) const { return operand.is_constant || bound_[operand.bits]; }
  uint64_t BoundColumns(const Atom& atom) const;
  bool SharesSlot(const Atom& atom) const;
  double Expected(const Atom& atom, uint32_t rows);
  void AddAtom(const Query& query, uint32_t atom, RowRange range);
  // Adds the primitives whose arguments are bound by now.
  void AddPrimitives(const Query& query);

  const EGraph& graph_;
  JoinIndexes& indexes_;
  JoinPlan plan_;
  std::vector<uint8_t> bound_;               // by slot
  std::vector<uint8_t> planned_primitives_;  // by primitive atom
  std::vector<uint32_t> open_atoms_;
};

}  // namespace l3c::egraph
