// Looking things up in a proof log: which terms were equal when, and along which equations.
//
// Built once over a log that is finished for now. "At time t" means by records before t.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "egraph/extract/time_limit.h"
#include "egraph/proof_log.h"
#include "egraph/term_bank.h"

namespace l3c::egraph {

class ProofIndex {
 public:
  ProofIndex(const EGraph& graph, TermBank& bank, TimeLimit limit = {});
  // False when the time limit passed before it was built: it is then of no use.
  bool complete() const { return complete_; }

  // --- Terms are of the bank.
  // A node that the term was congruent to at time t, of those the one with most arguments alike.
  std::optional<uint32_t> NodeOf(Value term, uint32_t t);
  // Nodes that the two terms were congruent to and that were equal. Between a union and the next
  // rebuild a term may be congruent to several nodes that are not equal yet, so this is more than
  // NodeOf() of both.
  std::optional<std::pair<uint32_t, uint32_t>> Meet(Value x, Value y, uint32_t t);
  bool SameAt(SortId sort, Value x, Value y, uint32_t t);
  bool SameNodes(uint32_t a, uint32_t b, uint32_t t) const { return FindAt(a, t) == FindAt(b, t); }
  // A fact with arguments and value equal to these at time t.
  std::optional<uint32_t> FactOf(FunctionId f, std::span<const Value> args, Value value,
                                 uint32_t t);

  // --- Equations, with both ends as exact as the log knows them.
  struct Ends {
    uint32_t a, b;  // nodes
  };
  Ends ends(uint32_t equation) const { return ends_[equation]; }
  struct Hop {
    uint32_t equation;
    bool reversed;
  };
  // What counts as short. Early equations rest on little; congruences rest on equalities of their
  // own.
  enum class Way : uint8_t { kJoining, kFewest, kFewCongruences, kEarly };
  // Equations that lead from node a to node b, all before t: those that joined classes, or a
  // shortest way along all equations. Nothing when the two were not equal.
  std::optional<std::vector<Hop>> Path(uint32_t a, uint32_t b, uint32_t t, Way way);

 private:
  uint32_t FindAt(uint32_t node, uint32_t t) const {
    while (parents_[node] != node && link_times_[node] < t) node = parents_[node];
    return node;
  }
  // What a value is called where all that is equal has one name. False when its term has no node.
  bool FinalName(SortId sort, Value term, uint32_t t, uint32_t* name);
  uint64_t Hash(FunctionId f, std::span<const uint32_t> names) const;
  std::optional<Value> CanonicalAt(SortId sort, Value container, uint32_t t);
  // Containers may share what they hold many times over: those that hold containers are looked at
  // once.
  using CanonicalParts = absl::flat_hash_map<uint32_t, Value>;  // by container
  std::optional<Value> CanonicalAt(SortId sort, Value container, uint32_t t, CanonicalParts* known);
  bool AllSame(FunctionId f, std::span<const Value> x, std::span<const Value> y, uint32_t t);
  // The nodes f(args) at time t, those with most arguments alike first.
  std::vector<uint32_t> Congruent(Value term, uint32_t t);
  uint64_t HashRow(FunctionId f, uint32_t args);
  std::optional<uint32_t> NodeOfRow(uint32_t row, uint32_t t, uint32_t to);
  void LinkClasses();
  void HashRows();
  void ResolveEnds();
  void GrowForest();
  void ListEdges();
  std::optional<std::vector<Hop>> ForestPath(uint32_t a, uint32_t b) const;
  std::optional<std::vector<Hop>> ShortestPath(uint32_t a, uint32_t b, uint32_t t, Way way) const;

  // Looks at the clock once in many calls; false once the time limit has passed.
  bool InTime() {
    if (++calls_ % kCallsPerLook == 0 && limit_.Passed()) complete_ = false;
    return complete_;
  }
  static constexpr uint32_t kCallsPerLook = 1024;

  const EGraph& graph_;
  const ProofLog& log_;
  TermBank& bank_;
  // A union-find without path compression: the link of a node holds from its time on.
  std::vector<uint32_t> parents_;
  std::vector<uint32_t> link_times_;
  std::vector<uint8_t> joined_;  // by equation
  std::vector<Ends> ends_;       // by equation
  struct Hashed {
    uint64_t hash;
    uint32_t row;
  };
  std::vector<Hashed> nodes_by_hash_;  // of function and final names of the arguments
  std::vector<Hashed> facts_by_hash_;
  // The forest of the equations that joined classes.
  std::vector<uint32_t> up_;  // by node: the equation to its parent in the tree; kNone at roots
  std::vector<uint32_t> depth_;
  // By node: its equations, all of them.
  std::vector<uint32_t> first_edge_;
  std::vector<uint32_t> edges_;
  uint32_t lookups_ = 0;  // Congruent() in Congruent()
  TimeLimit limit_;
  uint32_t calls_ = 0;
  bool complete_ = true;
  // What Meet() has found, by terms and time; two times no node where that is nothing.
  absl::flat_hash_map<std::array<uint32_t, 3>, std::pair<uint32_t, uint32_t>> met_;
  std::vector<uint32_t> names_;
};

}  // namespace l3c::egraph
