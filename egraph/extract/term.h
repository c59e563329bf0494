// The smallest term of any value, as the text language prints it.
//
// Tree cost: a constructor's `:cost` plus the costs of its arguments; a literal costs 1, a
// container the sum of its elements. Sums stop at the largest 64-bit number. Of equally cheap
// e-nodes the one found first stays, in order of declaration and rows, so the same graph gives the
// same terms. Not to be used from two threads at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/egraph.h"

namespace l3c::egraph {

class TermExtractor {
 public:
  // Costs every class of `graph`, which must be rebuilt, outlive the extractor and not change.
  explicit TermExtractor(const EGraph& graph);

  // The cost of the smallest term, if there is one.
  std::optional<uint64_t> Cost(SortId sort, Value value) const;
  // The smallest term, if there is one. Shared subterms are repeated; what is longer than
  // `max_bytes` is cut there and ends in "…".
  std::optional<std::string> Text(SortId sort, Value value, size_t max_bytes = kMaxBytes) const;
  // A row as a term, `(f a b)`; arguments without a term show as Unextractable.
  std::string RowText(FunctionId f, const Row& row, size_t max_bytes = kMaxBytes) const;

  struct Variant {
    uint64_t cost = 0;
    std::string text;
  };
  // The smallest term of each e-node of a class, by cost, at most `count`; none after `max_bytes`
  // in all, where the last one is cut.
  std::vector<Variant> Variants(SortId sort, Value value, size_t count,
                                size_t max_bytes = kMaxBytes) const;

  static constexpr size_t kMaxBytes = size_t{64} << 20;

 private:
  struct Best {
    uint64_t cost = 0;
    FunctionId function;  // invalid: no term
    uint32_t row = 0;
  };
  struct Piece {
    SortId sort;
    Value value;
    const char* text;  // printed instead of the value when not null
  };
  std::optional<uint64_t> NodeCost(FunctionId f, uint32_t row) const;
  std::optional<uint64_t> SumOfElements(SortId sort, Value container) const;
  // Takes the e-node for its class where it is cheaper than what the class has; true if it was.
  bool Offer(FunctionId f, uint32_t row);
  // What sweeps would give in the end, by looking only at e-nodes whose arguments got cheaper.
  void Settle();
  // Prints the pieces, the last one first.
  std::string Print(std::vector<Piece> pieces, size_t max_bytes) const;
  void PushNode(FunctionId f, uint32_t row, std::vector<Piece>* pieces) const;

  const EGraph& graph_;
  std::vector<Best> best_;  // by class
  // Containers may share what they hold many times over, so each is added up once, until a class in
  // one of them gets cheaper.
  mutable absl::flat_hash_map<uint32_t, std::optional<uint64_t>> container_costs_;  // by value
  mutable std::vector<bool> in_container_;                                          // by class
};

}  // namespace l3c::egraph
