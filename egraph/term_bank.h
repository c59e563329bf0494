// Terms, each once, with no equalities between them: what proofs speak about.
//
// A bank is an e-graph with the declarations, rules and literals of another one and without its
// rows. Nothing is ever united in it, so a Value is a term, and two terms are the same exactly when
// their bits are. Primitives run on it as they run on any graph, and actions can be carried out on
// it to see what they claim; that is all that the explainer and the checker have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/egraph.h"
#include "egraph/rule.h"

namespace l3c::egraph {

// What a proof step says: the term function(args) of a function or a relation has the value `rhs`;
// or, where `function` is none, the terms `lhs` and `rhs` of one sort are equal. Both terms of an
// equality are there, so t = t says that t is.
struct Claim {
  FunctionId function;
  std::vector<Value> args;
  Value lhs;
  Value rhs;
  SortId sort;  // of `rhs`

  bool is_fact() const { return function.valid(); }
  friend bool operator==(const Claim&, const Claim&) = default;
};

class TermBank {
 public:
  // `graph` must keep a log and outlive the bank.
  explicit TermBank(const EGraph& graph);

  // For primitives, literals and declarations.
  EGraph& terms() { return bank_; }
  const EGraph& terms() const { return bank_; }

  Value Call(FunctionId constructor, std::span<const Value> args);
  // The call that a term of an equality sort is.
  FunctionId FunctionOf(Value term) const { return calls_[term.bits].function; }
  std::span<const Value> ArgsOf(Value term) const {
    return std::span(args_).subspan(calls_[term.bits].args,
                                    bank_.function(FunctionOf(term)).inputs.size());
  }

  // The term of a node of the log, and of a value of the graph: a class id stands for the node that
  // it was created with.
  Value OfNode(uint32_t node);
  Value OfValue(SortId sort, Value v);
  // The first node found to have this term, or ProofLog::kNone.
  uint32_t KnownNode(Value term) const {
    return term.bits < term_nodes_.size() ? term_nodes_[term.bits] : ProofLog::kNone;
  }
  static Value OfOperand(const Operand& o, std::span<const Value> slots) {
    return o.is_constant ? Value{o.bits} : slots[o.bits];
  }

  // What a node, an equation or a fact of the log says by itself; nothing unless the caller put it
  // in.
  std::optional<Claim> GivenNode(uint32_t node);
  std::optional<Claim> GivenEquation(uint32_t equation);
  std::optional<Claim> GivenFact(uint32_t fact);

  Claim FactClaim(uint32_t fact);  // whoever put it in

  // Carries out actions on terms. `slots` holds the values of the query's slots and room for all
  // others. The i-th kLookup gives `reads[i]`, and what it thereby relies on goes to `relies`.
  // Nothing when a primitive gives nothing or a read is missing.
  std::optional<std::vector<Claim>> Execute(const Rule& rule, std::span<Value> slots,
                                            std::span<const Value> reads,
                                            std::vector<Claim>* relies);
  // What a merge claims of function(args): for Merge::Union() that the two values are equal, else
  // what the merged value is; and what its actions claim.
  std::optional<std::vector<Claim>> ExecuteMerge(FunctionId f, std::span<const Value> args,
                                                 Value old_value, Value new_value,
                                                 std::span<const Value> reads,
                                                 std::vector<Claim>* relies);
  // Whether a premise `(bool-= x y)` compares what unions can make equal, so that it is no
  // computation but an equality to be shown.
  bool IsEqualityPremise(const Query& query, const PrimitiveAtom& p) const {
    if (bank_.primitives()[p.primitive].name != "bool-=" || p.args[0].is_constant) return false;
    const Sort& sort = bank_.sort(query.slot_sorts[p.args[0].bits]);
    return sort.is_equality || sort.moves;
  }
  // Runs a primitive as a premise.
  std::optional<Value> Evaluate(uint32_t primitive, std::span<const Value> args);

 private:
  void Register();  // the calls that the bank has got since

  const EGraph& graph_;
  EGraph bank_;
  struct Entry {
    FunctionId function;
    size_t args;
  };
  std::vector<Entry> calls_;  // by term
  std::vector<Value> args_;
  std::vector<uint32_t> node_terms_;  // by node, Value::kNone where not known yet
  std::vector<uint32_t> term_nodes_;  // by term, as far as known
  // Of containers that hold containers: these may share what they hold many times over.
  absl::flat_hash_map<uint32_t, Value> container_terms_;  // by value of the graph
};

}  // namespace l3c::egraph
