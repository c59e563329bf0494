// Why two terms are equal, or why a fact holds: proofs out of the log of an e-graph.
//
//   EGraph g;
//   g.EnableProofs();
//   …                                      // declarations, rules, terms, runs
//   std::optional<Proof> proof = Explainer(g).Explain(a, b);
//   ProofChecker(g).Check(*proof);         // proof_checker.h: nothing when it is a proof
//   PrintProof(g, *proof);                 // proof_text.h
//
// A class id stands for the term with which it was created, whatever has been united with it since:
// what Add() gave when the term was new.
//
// The explainer goes back in time through the log: what a record relies on was there before it, so
// it needs no search but for the terms and equalities that a premise matched. Equal claims are
// proven once; where the log keeps redundant unions, proofs along several kinds of shortest ways
// are made too, unless the first one has very many steps, and the one with the fewest is given.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "egraph/egraph.h"
#include "egraph/extract/time_limit.h"
#include "egraph/proof.h"
#include "egraph/proof_index.h"
#include "egraph/term_bank.h"

namespace l3c::egraph {

class Explainer {
 public:
  // `graph` must have a log, and stay as it is while the explainer is in use; it is rebuilt first.
  // Takes time and memory in proportion to the log. After the time limit there are no proofs, and
  // gap() says so.
  explicit Explainer(EGraph& graph, TimeLimit limit = {});

  // Nothing when the two are not equal.
  std::optional<Proof> Explain(Value a, Value b);
  // That a query holds with these values of its slots. Terms are taken from the query as far as it
  // spells them out.
  std::optional<Proof> ExplainMatch(const Query& query, std::span<const Value> slots);
  // Of the proof asked for last: why there is none although the claim holds. Empty unless that is a
  // limitation of the log, such as a primitive that looks into tables, or the time limit.
  const std::string& gap() const { return gap_; }

 private:
  template <typename Goals>
  std::optional<Proof> Prove(Goals&& goals);

  EGraph& graph_;
  const TimeLimit limit_;
  TermBank bank_;
  ProofIndex index_;
  std::string gap_;
};

}  // namespace l3c::egraph
