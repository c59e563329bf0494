// One proof in the making (explain.h asks for it).
//
// Every record of the log is derived by one function, run twice: a first time to learn which
// earlier records it needs, from the latest to the earliest; a second time, from the earliest to
// the latest, to write the steps down, when all that it needs has been written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "egraph/egraph.h"
#include "egraph/extract/time_limit.h"
#include "egraph/proof.h"
#include "egraph/proof_index.h"
#include "egraph/term_bank.h"

namespace l3c::egraph {

class ProofBuilder {
 public:
  using Ref = Proof::Ref;  // a step, kNone where the two sides are the same term

  ProofBuilder(const EGraph& graph, TermBank& bank, ProofIndex& index, ProofIndex::Way way,
               TimeLimit limit = {})
      : graph_(graph),
        log_(*graph.proof_log()),
        bank_(bank),
        index_(index),
        way_(way),
        time_(limit) {}

  // `goals(builder)` proves what is wanted by the calls below and gives the steps; it is called
  // twice and must do the same both times. Nothing when it fails.
  template <typename Goals>
  std::optional<Proof> Build(Goals&& goals) {
    collecting_ = true;
    limit_ = log_.now();
    goals(*this);
    Collect();
    collecting_ = false;
    Write();
    limit_ = log_.now();
    const std::vector<Ref> wanted = goals(*this);
    if (failed_) return std::nullopt;
    return Finish(wanted);
  }

  // x = y, by records before t.
  Ref Equal(SortId sort, Value x, Value y, uint32_t t);
  // t = t for a term.
  Ref There(Value term, uint32_t t);
  // constructor(args) = out, function(args) = out.
  Ref Row(FunctionId f, std::span<const Value> args, Value out, uint32_t t);
  // The premises of a query, in the order of Proof::Application::premises.
  std::vector<Ref> Premises(const Query& query, std::span<const Value> slots, uint32_t t);

  const std::string& gap() const { return gap_; }

 private:
  struct Draft {
    Proof::Step::Kind kind;
    Claim claim;
    uint32_t source;
    std::vector<Ref> premises;
  };
  struct Applied {
    Proof::Application::Kind kind;
    uint32_t subject = 0;
    std::vector<Value> slots;  // terms
    std::vector<SortId> slot_sorts;
    std::vector<Value> reads;
    std::vector<SortId> read_sorts;
    std::vector<Claim> claims;
    std::vector<Claim> relies;
    bool collected = false;
    bool proven = false;
    std::vector<Ref> premises;
  };

  void Collect();
  void Write();
  Ref Event(uint32_t time);
  Ref Derive(uint32_t time);
  Ref DeriveNode(uint32_t node);
  Ref DeriveEquation(uint32_t equation);
  Ref DeriveFact(uint32_t fact);
  // Null when the actions cannot be carried out on terms.
  Applied* Application(uint32_t index);
  // A step with a claim of the application, whose premises are proven first.
  Ref Apply(uint32_t application, const Claim& claim);
  Ref Fact(FunctionId f, std::span<const Value> args, Value value, uint32_t t);
  Ref AsFact(Ref base, const Claim& has, Claim wanted, uint32_t t);
  std::optional<Applied> Carry(uint32_t application);
  std::vector<Value> ReadsOf(uint32_t application);
  // From `base`, whose left side is a call with arguments `from`: the same with arguments `to`.
  Ref Congruence(Ref base, Claim claim, FunctionId f, std::span<const Value> from,
                 std::span<const Value> to, uint32_t t);
  Ref NodeIs(uint32_t node, Value term, uint32_t t);  // term = the node's term
  Ref Container(SortId sort, Value x, Value y, uint32_t t);
  Ref Chain(Claim claim, std::vector<Ref> links);
  Ref Emit(Proof::Step::Kind kind, Claim claim, std::vector<Ref> premises,
           uint32_t source = Proof::kNone);
  std::optional<Ref> Known(const Claim& claim) const;
  Ref Fail(std::string why);
  Value LeftOf(Ref ref) const;
  Value RightOf(Ref ref) const;
  std::optional<Proof> Finish(const std::vector<Ref>& wanted);
  void Flatten(std::vector<uint32_t>* uses);

  const EGraph& graph_;
  const ProofLog& log_;
  TermBank& bank_;
  ProofIndex& index_;
  const ProofIndex::Way way_;
  const TimeLimit time_;
  uint32_t derived_ = 0;
  bool collecting_ = true;
  bool failed_ = false;
  std::string gap_;
  uint32_t nested_ = 0;  // Equal() in Equal()
  uint32_t limit_ = 0;   // records from here on may not be used
  std::priority_queue<uint32_t> wanted_;
  std::vector<uint32_t> collected_;  // times, latest first
  // Pairs whose elements have been related, by sort, values and time.
  absl::flat_hash_set<std::array<uint32_t, 4>> collected_containers_;
  absl::flat_hash_map<uint32_t, Ref> events_;
  std::vector<Draft> drafts_;
  // Steps by what they claim: equalities by sort and sides, facts by all that they say.
  absl::flat_hash_map<std::array<uint32_t, 3>, uint32_t> by_equality_;
  absl::flat_hash_map<std::vector<uint32_t>, uint32_t> by_fact_;
  std::map<uint32_t, Applied> applied_;  // by application of the log
  std::optional<absl::flat_hash_map<uint32_t, std::vector<Value>>> reads_;  // by application
};

}  // namespace l3c::egraph
