// Deciding whether a proof is one.
//
// The checker shares nothing with the explainer but the bank of terms, which carries out actions
// and primitives on terms, and it never looks at the e-graph's tables or classes. It believes the
// rules, the statements of the program, what the caller put in, and that primitives compute what
// they should. A premise such as (!= a b) over terms holds when they are different terms; that they
// were different classes at the time cannot be seen from a proof.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/extract/time_limit.h"
#include "egraph/proof.h"
#include "egraph/term_bank.h"

namespace l3c::egraph {

class ProofChecker {
 public:
  // `graph` must keep a log. Its rules, statements and inputs are read; rules may be added later
  // only for another checker.
  explicit ProofChecker(const EGraph& graph, TimeLimit limit = {})
      : graph_(graph), limit_(limit), bank_(graph) {}

  // Nothing when every step follows; otherwise what is wrong with the first that does not, or that
  // the time limit passed before all had been checked.
  std::optional<std::string> Check(const Proof& proof);
  // The same, and that the proof's only goal is that the terms of these class ids are equal.
  std::optional<std::string> CheckEqual(const Proof& proof, Value a, Value b);

 private:
  bool LoadTerms();
  bool LoadTerm(const Proof::Term& term);
  bool CheckStep(uint32_t step);
  bool CheckGiven(const Proof::Step& step, const Claim& claim);
  bool CheckApplication(uint32_t application, uint32_t step);
  bool CheckPremises(const Proof::Application& app, const Rule& rule, std::span<const Value> slots,
                     size_t* used, uint32_t step);
  bool CheckCongruence(const Proof::Step& step, const Claim& claim);
  bool CheckChain(const Proof::Step& step, const Claim& claim);
  bool CheckContainer(const Proof::Step& step, const Claim& claim);
  // The claim of a step or a premise, read from the side that the reference names. Nothing for a
  // fact read backwards.
  std::optional<Claim> ClaimOf(uint32_t step) const;
  std::optional<Claim> ClaimOf(Proof::Ref ref) const;
  // Whether the reference is to a step before `step` that claims this.
  bool Shows(Proof::Ref ref, const Claim& wanted, uint32_t step) const;
  bool Wrong(std::string what);

  const EGraph& graph_;
  const TimeLimit limit_;
  TermBank bank_;
  const Proof* proof_ = nullptr;
  std::vector<Value> values_;                  // by term of the proof; not for calls of functions
  std::vector<std::vector<Claim>> concluded_;  // by application, once checked
  std::vector<uint8_t> checked_;               // by application
  std::string wrong_;
};

}  // namespace l3c::egraph
