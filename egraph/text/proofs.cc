// Commands that ask why: prove, prove-exists, why-not.
#include <utility>

#include "egraph/explain.h"
#include "egraph/nearest_match.h"
#include "egraph/proof_checker.h"
#include "egraph/proof_text.h"
#include "egraph/text/loader.h"
#include "egraph/why_not.h"

namespace l3c::egraph {

void Loader::EnableProofsIfAsked() {
  if (graph_.proof_log() != nullptr || graph_.ClassCount() != 0 || graph_.RowCount() != 0) return;
  for (uint32_t command : doc_.top_level()) {
    if (!IsNonEmptyList(command) || !doc_.IsSymbol(Child(command, 0))) continue;
    const std::string_view head = doc_.Text(Child(command, 0));
    if (head != "prove" && head != "prove-exists") continue;
    graph_.EnableProofs({.redundant = true});
    return;
  }
}

// A proof of the first match of the query, checked.
std::optional<Proof> Loader::ProveQuery(uint32_t n, const Query& query) {
  if (graph_.proof_log() == nullptr) {
    Error(Offset(n), "nothing has been written down for proofs; run with --proofs",
          ErrorKind::kConsistency);
    return std::nullopt;
  }
  if (!graph_.Rebuild()) {
    Error(Offset(n), *graph_.failure(), ErrorKind::kConsistency);
    return std::nullopt;
  }
  const TimeLimit limit(TimeKind::kWall, options_.budget.max_seconds);
  NearestMatch nearest(graph_, kMaxProveRows, limit);
  nearest.SeeSubsumed(true);
  const PartialMatch match = nearest.Find(query);
  if (!match.complete && limit.Passed()) {
    Error(Offset(n), "the time limit passed before a match was found", ErrorKind::kResourceBound);
    return std::nullopt;
  }
  if (!match.complete) {
    Error(Offset(n),
          match.searched_all ? "no match for " + Quoted(n)
                             : "no match for " + Quoted(n) + " among the first " +
                                   std::to_string(kMaxProveRows) + " rows",
          match.searched_all ? ErrorKind::kConsistency : ErrorKind::kResourceBound);
    return std::nullopt;
  }
  Explainer explainer(graph_, limit);
  std::optional<Proof> proof = explainer.ExplainMatch(query, match.slots);
  if (!proof) {
    Error(Offset(n), "it holds, but there is no proof of it: " + explainer.gap(),
          ErrorKind::kConsistency);
    return std::nullopt;
  }
  // A query of primitives alone has no steps to check.
  if (proof->goals.empty()) return proof;
  if (const std::optional<std::string> wrong = ProofChecker(graph_, limit).Check(*proof)) {
    Error(Offset(n),
          (limit.Passed() ? "the proof was not checked: " : "the proof was refused: ") + *wrong,
          ErrorKind::kConsistency);
    return std::nullopt;
  }
  return proof;
}

bool Loader::PrintProofOf(uint32_t n, const Query& query) {
  const std::optional<Proof> proof = ProveQuery(n, query);
  if (!proof) return false;
  Printed printed;
  printed.kind = Printed::Kind::kProof;
  printed.text = PrintProof(graph_, *proof);
  if (options_.json) printed.json = ProofJson(graph_, *proof);
  return Print(n, std::move(printed));
}

bool Loader::ProveCheck(uint32_t n, const Query& query) {
  if (!options_.prove_checks || graph_.proof_log() == nullptr) return true;
  const std::optional<Proof> proof = ProveQuery(n, query);
  if (proof) {
    ++result_.proven_checks;
    result_.proof_steps += proof->steps.size();
    return true;
  }
  result_.unproven_checks.push_back(result_.status.ToString());
  result_.status = ProgramStatus{};
  return true;
}

// (prove FACT...)
bool Loader::ProveCommand(uint32_t n) {
  Query query;
  return ReadQuery(n, 1, &query) && PrintProofOf(n, query);
}

// (prove-exists CONSTRUCTOR): that some term of it is there.
bool Loader::ProveExistsCommand(uint32_t n) {
  FunctionId f;
  if (!Takes(n, 1, 1) || !FunctionName(Child(n, 1), &f)) return false;
  const Function& function = graph_.function(f);
  Query query;
  query.slot_sorts = function.inputs;
  query.slot_sorts.push_back(function.output);
  Atom atom{f, {}};
  for (uint32_t i = 0; i < query.slot_sorts.size(); ++i) atom.columns.push_back(Operand::Slot(i));
  query.atoms.push_back(std::move(atom));
  return PrintProofOf(n, query);
}

// (why-not A B)
bool Loader::WhyNotCommand(uint32_t n) {
  EGraph::Global a, b;
  if (!Takes(n, 2, 2) || !Evaluate(n, Child(n, 1), &a) || !Evaluate(n, Child(n, 2), &b)) {
    return false;
  }
  if (a.sort != b.sort || !graph_.sort(a.sort).is_equality) {
    return Error(Offset(n), "expected two terms of one declared sort", ErrorKind::kSafety);
  }
  const WhyNot why_not = ExplainWhyNot(graph_, a.value, b.value, options_.budget.max_seconds);
  Printed printed;
  printed.kind = Printed::Kind::kWhyNot;
  printed.text = WhyNotText(graph_, why_not);
  if (options_.json) printed.json = WhyNotJson(graph_, why_not);
  return Print(n, std::move(printed));
}

}  // namespace l3c::egraph
